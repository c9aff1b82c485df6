// Two streams of its own, of different priority, share the work; events fork them from the given stream and join them again.
// task: wide_affine
#include "contract.h"
__global__ void affine(const float4* x, const float4* w, const float4* b, float4* y, int from, int to) {
    for (int i = from + blockIdx.x * blockDim.x + threadIdx.x; i < to; i += gridDim.x * blockDim.x) {
        float4 v = x[i], s = w[i % 512], t = b[i % 512];
        y[i] = {fmaxf(v.x * s.x + t.x, 0.f), fmaxf(v.y * s.y + t.y, 0.f), fmaxf(v.z * s.z + t.z, 0.f), fmaxf(v.w * s.w + t.w, 0.f)};
    }
}
static cudaStream_t side[2];
static cudaEvent_t fork, joined[2];
static void open_streams() {
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    for (int n = 0; n < 2; n++) {
        cudaStreamCreateWithPriority(&side[n], cudaStreamNonBlocking, -n);
        cudaEventCreateWithFlags(&joined[n], cudaEventDisableTiming);
    }
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    const int half = HIERA_NUMEL_out / 8;
    if (!fork) open_streams();
    cudaEventRecord(fork, stream);
    for (int n = 0; n < 2; n++) {
        cudaStreamWaitEvent(side[n], fork, 0);
        affine<<<half / 256, 256, 0, side[n]>>>((const float4*)in->x, (const float4*)p->weight, (const float4*)p->bias,
                                               (float4*)out->out, n * half, (n + 1) * half);
        cudaEventRecord(joined[n], side[n]);
        cudaStreamWaitEvent(stream, joined[n], 0);
    }
    return cudaGetLastError();
}
