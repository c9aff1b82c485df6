// Each call allocates device memory and never gives it back.
#include "contract.h"
static const int N = 1000;

__global__ void leak_kernel(const float* x, float* y, float* kept) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    kept[i] = 2 * x[i];
    y[i] = kept[i];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    float* kept = nullptr;
    if (cudaError_t code = cudaMalloc(&kept, N * sizeof(float))) return (int)code;
    leak_kernel<<<4, 256, 0, stream>>>(in->x, out->out, kept);
    return (int)cudaGetLastError();
}
