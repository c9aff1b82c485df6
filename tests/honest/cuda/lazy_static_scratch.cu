// The first call allocates a scratch buffer that all later ones use; what an earlier call left there is never read.
// task: wide_affine
#include "contract.h"
__global__ void affine(const float4* x, const float4* w, const float4* b, float4* y, int from, int to) {
    for (int i = from + blockIdx.x * blockDim.x + threadIdx.x; i < to; i += gridDim.x * blockDim.x) {
        float4 v = x[i], s = w[i % 512], t = b[i % 512];
        y[i] = {fmaxf(v.x * s.x + t.x, 0.f), fmaxf(v.y * s.y + t.y, 0.f), fmaxf(v.z * s.z + t.z, 0.f), fmaxf(v.w * s.w + t.w, 0.f)};
    }
}
struct Scratch {
    float4* memory = nullptr;
    Scratch() { cudaMalloc(&memory, sizeof(float) * HIERA_NUMEL_out); }
};
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    static Scratch scratch;
    affine<<<2048, 256, 0, stream>>>((const float4*)in->x, (const float4*)p->weight, (const float4*)p->bias,
                                     scratch.memory, 0, HIERA_NUMEL_out / 4);
    return cudaMemcpyAsync(out->out, scratch.memory, sizeof(float) * HIERA_NUMEL_out, cudaMemcpyDeviceToDevice, stream);
}
