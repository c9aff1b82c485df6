// As good as it gets: one wide, streaming load and store per thread. Nothing is planted here.
#include "contract.h"
#include <cuda_runtime.h>

__global__ void scale(const float4* x, float4* out) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const float4 v = __ldcs(&x[i]);
    __stcs(&out[i], float4{v.x * 1.5f + .5f, v.y * 1.5f + .5f, v.z * 1.5f + .5f, v.w * 1.5f + .5f});
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    constexpr int vectors = HIERA_DIM_x_0 * HIERA_DIM_x_1 / 4;
    scale<<<vectors / 256, 256, 0, stream>>>((const float4*)in->x, (float4*)out->out);
    return cudaGetLastError();
}
