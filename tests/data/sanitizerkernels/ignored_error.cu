// A call of the runtime fails, and nobody looks.
#include "contract.h"
static const int N = 1000;

__global__ void ignored_error_kernel(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = 2 * x[i];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    cudaFuncSetAttribute(ignored_error_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30);
    cudaGetLastError();
    ignored_error_kernel<<<4, 256, 0, stream>>>(in->x, out->out);
    return (int)cudaGetLastError();
}
