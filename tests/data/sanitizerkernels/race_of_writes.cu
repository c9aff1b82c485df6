// All threads of a block write the same element of shared memory.
#include "contract.h"
static const int N = 1000;
__global__ void race_of_writes_kernel(const float* x, float* y) {
    __shared__ float last;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    last = i < N ? x[i] : 0;  // planted
    __syncthreads();
    if (i < N) y[i] = 2 * last;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* ws, cudaStream_t stream) {
    (void)ws;
    race_of_writes_kernel<<<4, 256, 0, stream>>>(in->x, out->out);
    return (int)cudaGetLastError();
}
