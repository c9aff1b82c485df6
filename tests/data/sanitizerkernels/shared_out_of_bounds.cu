// The last thread of a block writes past the end of the shared array.
#include "contract.h"
static const int N = 1000;
__global__ void shared_out_of_bounds_kernel(const float* x, float* y) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x + 1] = i < N ? x[i] : 0;  // planted
    __syncthreads();
    if (i < N) y[i] = 2 * tile[threadIdx.x];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* ws, cudaStream_t stream) {
    (void)ws;
    shared_out_of_bounds_kernel<<<4, 256, 0, stream>>>(in->x, out->out);
    return (int)cudaGetLastError();
}
