// Planted: the multiplication and the addition are kernels of their own, so that the result is written and read twice.
#include "contract.h"
#include <cuda_runtime.h>

__global__ void multiply(const float4* x, float4* out) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const float4 v = x[i];
    out[i] = float4{v.x * 1.5f, v.y * 1.5f, v.z * 1.5f, v.w * 1.5f};
}

__global__ void add(float4* out) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const float4 v = out[i];
    out[i] = float4{v.x + .5f, v.y + .5f, v.z + .5f, v.w + .5f};
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    constexpr int blocks = HIERA_DIM_x_0 * HIERA_DIM_x_1 / 4 / 256;
    multiply<<<blocks, 256, 0, stream>>>((const float4*)in->x, (float4*)out->out);
    add<<<blocks, 256, 0, stream>>>((float4*)out->out);
    return cudaGetLastError();
}
