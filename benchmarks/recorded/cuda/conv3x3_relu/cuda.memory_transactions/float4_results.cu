// Four adjacent results per thread: float4 loads with two edge values, float4 stores, ReLU on the way.
#include "contract.h"

const int B = HIERA_DIM_x_0, C = HIERA_DIM_x_1, H = HIERA_DIM_x_2, W = HIERA_DIM_x_3, O = HIERA_DIM_out_1;
const int Q = W / 4, ROWS = 16;

__global__ void convolve(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ bias, float* __restrict__ y) {
    const int q = threadIdx.x, r = blockIdx.x * ROWS + threadIdx.y, o = blockIdx.y, n = blockIdx.z;
    float4 sum = make_float4(bias[o], bias[o], bias[o], bias[o]);
    for (int c = 0; c < C; c++)
#pragma unroll
        for (int d = 0; d < 3; d++) {
            const int row = r + d - 1;
            if (row < 0 || row >= H) continue;
            const float *from = x + ((n * C + c) * H + row) * W + q * 4, *k = w + (o * C + c) * 9 + d * 3;
            const float4 v = *reinterpret_cast<const float4*>(from);
            const float left = q > 0 ? from[-1] : 0.f, right = q < Q - 1 ? from[4] : 0.f;
            sum.x += k[0] * left + k[1] * v.x + k[2] * v.y;
            sum.y += k[0] * v.x + k[1] * v.y + k[2] * v.z;
            sum.z += k[0] * v.y + k[1] * v.z + k[2] * v.w;
            sum.w += k[0] * v.z + k[1] * v.w + k[2] * right;
        }
    *reinterpret_cast<float4*>(y + ((n * O + o) * H + r) * W + q * 4) =
        make_float4(fmaxf(sum.x, 0.f), fmaxf(sum.y, 0.f), fmaxf(sum.z, 0.f), fmaxf(sum.w, 0.f));
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    convolve<<<dim3(H / ROWS, O, B), dim3(Q, ROWS), 0, stream>>>(in->x, p->conv_weight, p->conv_bias, out->out);
    return cudaGetLastError();
}
