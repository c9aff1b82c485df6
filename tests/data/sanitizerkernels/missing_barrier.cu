// Threads read what other warps write, without __syncthreads between.
#include "contract.h"
static const int N = 1000;
__global__ void missing_barrier_kernel(const float* x, float* y) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < N ? x[i] : 0;  // planted
    if (i < N) y[i] = 2 * tile[255 - threadIdx.x];  // planted
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* ws, cudaStream_t stream) {
    (void)ws;
    missing_barrier_kernel<<<4, 256, 0, stream>>>(in->x, out->out);
    return (int)cudaGetLastError();
}
