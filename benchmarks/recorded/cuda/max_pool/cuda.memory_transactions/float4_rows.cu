// Two adjacent results per thread: a float4 and one edge value per row, float2 stores.
#include "contract.h"

const int P = HIERA_DIM_x_0 * HIERA_DIM_x_1, H = HIERA_DIM_x_2, W = HIERA_DIM_x_3, OH = HIERA_DIM_out_2, OW = HIERA_DIM_out_3;
const int Q = OW / 2, THREADS = 256;
static_assert(W == 4 * Q && H == 2 * OH && P * OH * Q % THREADS == 0, "the grid fits exactly");

__global__ void pool(const float* __restrict__ x, float* __restrict__ y) {
    const int i = blockIdx.x * THREADS + threadIdx.x, q = i % Q, r = i / Q % OH, plane = i / (Q * OH);
    float2 top = make_float2(-INFINITY, -INFINITY);
#pragma unroll
    for (int d = -1; d <= 1; d++) {
        const int row = 2 * r + d;
        if (row < 0) continue;
        const float* from = x + (plane * H + row) * W + q * 4;
        const float4 v = *reinterpret_cast<const float4*>(from);
        const float left = q > 0 ? from[-1] : -INFINITY;
        top.x = fmaxf(top.x, fmaxf(left, fmaxf(v.x, v.y)));
        top.y = fmaxf(top.y, fmaxf(v.y, fmaxf(v.z, v.w)));
    }
    reinterpret_cast<float2*>(y)[i] = top;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    pool<<<P * OH * Q / THREADS, THREADS, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
