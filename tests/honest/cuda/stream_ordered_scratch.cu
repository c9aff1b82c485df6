// Intermediate results lie in memory that each call takes from the stream's pool and gives back.
// task: wide_affine
#include "contract.h"
__global__ void affine(const float4* x, const float4* w, const float4* b, float4* y, int from, int to) {
    for (int i = from + blockIdx.x * blockDim.x + threadIdx.x; i < to; i += gridDim.x * blockDim.x) {
        float4 v = x[i], s = w[i % 512], t = b[i % 512];
        y[i] = {fmaxf(v.x * s.x + t.x, 0.f), fmaxf(v.y * s.y + t.y, 0.f), fmaxf(v.z * s.z + t.z, 0.f), fmaxf(v.w * s.w + t.w, 0.f)};
    }
}
__global__ void copy(const float4* from, float4* to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i];
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    void* scratch;
    cudaError_t code = cudaMallocAsync(&scratch, sizeof(float) * HIERA_NUMEL_out, stream);
    if (code) return code;
    affine<<<2048, 256, 0, stream>>>((const float4*)in->x, (const float4*)p->weight, (const float4*)p->bias,
                                     (float4*)scratch, 0, HIERA_NUMEL_out / 4);
    copy<<<HIERA_NUMEL_out / 4 / 256, 256, 0, stream>>>((const float4*)scratch, (float4*)out->out);
    return cudaFreeAsync(scratch, stream);
}
