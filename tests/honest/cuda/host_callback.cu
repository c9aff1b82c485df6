// A host function runs in the order of the stream between two kernels and counts the calls.
// task: affine
#include "contract.h"
#include <atomic>
static std::atomic<long> calls;
static void count(void*) { calls++; }
__global__ void multiply(const float* x, const float* w, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * w[i % 256];
}
__global__ void finish(const float* b, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = fmaxf(y[i] + b[i % 256], 0.f);
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    multiply<<<HIERA_NUMEL_out / 256, 256, 0, stream>>>(in->x, p->weight, out->out);
    cudaLaunchHostFunc(stream, count, nullptr);
    finish<<<HIERA_NUMEL_out / 256, 256, 0, stream>>>(p->bias, out->out);
    return cudaGetLastError();
}
