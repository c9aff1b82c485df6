// Persisting L2 is set aside for the parameters while the call runs, by an access policy window on the given stream.
// task: wide_affine
#include "contract.h"
__global__ void affine(const float4* x, const float4* w, const float4* b, float4* y, int from, int to) {
    for (int i = from + blockIdx.x * blockDim.x + threadIdx.x; i < to; i += gridDim.x * blockDim.x) {
        float4 v = x[i], s = w[i % 512], t = b[i % 512];
        y[i] = {fmaxf(v.x * s.x + t.x, 0.f), fmaxf(v.y * s.y + t.y, 0.f), fmaxf(v.z * s.z + t.z, 0.f), fmaxf(v.w * s.w + t.w, 0.f)};
    }
}
static void window(cudaStream_t stream, const void* base, size_t bytes) {
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow.base_ptr = const_cast<void*>(base);
    value.accessPolicyWindow.num_bytes = bytes;
    value.accessPolicyWindow.hitRatio = 1.f;
    value.accessPolicyWindow.hitProp = bytes ? cudaAccessPropertyPersisting : cudaAccessPropertyNormal;
    value.accessPolicyWindow.missProp = bytes ? cudaAccessPropertyStreaming : cudaAccessPropertyNormal;
    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
}
extern "C" int hiera_prepare(const hiera_params*, void*, cudaStream_t) {
    return cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20);
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    window(stream, p->weight, sizeof(float) * HIERA_NUMEL_weight);
    affine<<<2048, 256, 0, stream>>>((const float4*)in->x, (const float4*)p->weight, (const float4*)p->bias,
                                     (float4*)out->out, 0, HIERA_NUMEL_out / 4);
    cudaError_t code = cudaGetLastError();
    window(stream, nullptr, 0);
    cudaGetLastError();
    return code;
}
