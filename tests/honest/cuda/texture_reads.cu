// The input is read through a texture object, made once per address.
// task: affine
#include "contract.h"
#include <map>
__global__ void affine(cudaTextureObject_t x, const float* w, const float* b, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = fmaxf(tex1Dfetch<float>(x, i) * w[i % 256] + b[i % 256], 0.f);
}
static std::map<const float*, cudaTextureObject_t> textures;
static cudaTextureObject_t texture_of(const float* x) {
    cudaTextureObject_t& texture = textures[x];
    if (texture) return texture;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<float*>(x);
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = sizeof(float) * HIERA_NUMEL_x;
    cudaTextureDesc how = {};
    how.readMode = cudaReadModeElementType;
    cudaCreateTextureObject(&texture, &resource, &how, nullptr);
    return texture;
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    affine<<<HIERA_NUMEL_out / 256, 256, 0, stream>>>(texture_of(in->x), p->weight, p->bias, out->out);
    return cudaGetLastError();
}
