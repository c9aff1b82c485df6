// Half a warp waits at a barrier that the other half never reaches.
#include "contract.h"
static const int N = 1000;
__global__ void divergent_barrier_kernel(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 48) __syncthreads();  // planted
    if (i < N) y[i] = 2 * x[i];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* ws, cudaStream_t stream) {
    (void)ws;
    divergent_barrier_kernel<<<4, 256, 0, stream>>>(in->x, out->out);
    return (int)cudaGetLastError();
}
