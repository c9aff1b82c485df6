// Four adjacent results per thread: float4 loads with two edge values, float4 stores.
#include "contract.h"

const int B = HIERA_DIM_x_0, C = HIERA_DIM_x_1, H = HIERA_DIM_x_2, W = HIERA_DIM_x_3;
const int Q = W / 4, THREADS = 256;
static_assert(B * C * H * Q % THREADS == 0, "the grid fits exactly");

__global__ void convolve(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ bias, float* __restrict__ y) {
    const int i = blockIdx.x * THREADS + threadIdx.x, q = i % Q, r = i / Q % H, plane = i / (Q * H), c = plane % C;
    const float* k = w + c * 9;
    float4 sum = make_float4(bias[c], bias[c], bias[c], bias[c]);
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const int row = r + d - 1;
        if (row < 0 || row >= H) continue;
        const float* from = x + (plane * H + row) * W + q * 4;
        const float4 v = *reinterpret_cast<const float4*>(from);
        const float left = q > 0 ? from[-1] : 0.f, right = q < Q - 1 ? from[4] : 0.f;
        const float k0 = k[d * 3], k1 = k[d * 3 + 1], k2 = k[d * 3 + 2];
        sum.x += k0 * left + k1 * v.x + k2 * v.y;
        sum.y += k0 * v.x + k1 * v.y + k2 * v.z;
        sum.z += k0 * v.y + k1 * v.z + k2 * v.w;
        sum.w += k0 * v.z + k1 * v.w + k2 * right;
    }
    reinterpret_cast<float4*>(y)[i] = sum;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    convolve<<<B * C * H * Q / THREADS, THREADS, 0, stream>>>(in->x, p->conv_weight, p->conv_bias, out->out);
    return cudaGetLastError();
}
