// Input tile and weights in shared memory; a thread keeps all 32 output channels of its pixel.
#include "contract.h"

const int B = HIERA_DIM_x_0, C = HIERA_DIM_x_1, H = HIERA_DIM_x_2, W = HIERA_DIM_x_3, O = HIERA_DIM_out_1;
const int ROWS = 4, TAPS = C * 9, PITCH = O + 4, THREADS = W * ROWS;

__global__ void convolve(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ bias, float* __restrict__ y) {
    __shared__ float tile[C][ROWS + 2][W + 2];
    __shared__ alignas(16) float k[TAPS][PITCH];
    const int tx = threadIdx.x, ty = threadIdx.y, first = blockIdx.x * ROWS, n = blockIdx.y;
    for (int i = ty * W + tx; i < O * TAPS; i += THREADS) k[i % TAPS][i / TAPS] = w[i];
    for (int i = ty; i < C * (ROWS + 2); i += ROWS) {
        const int c = i / (ROWS + 2), r = i % (ROWS + 2), row = first + r - 1;
        tile[c][r][tx + 1] = row >= 0 && row < H ? x[((n * C + c) * H + row) * W + tx] : 0.f;
        if (tx < 2) tile[c][r][tx * (W + 1)] = 0;
    }
    float sum[O];
#pragma unroll
    for (int o = 0; o < O; o++) sum[o] = bias[o];
    __syncthreads();
    for (int c = 0; c < C; c++)
#pragma unroll
        for (int t = 0; t < 9; t++) {
            const float v = tile[c][ty + t / 3][tx + t % 3];
            const float4* q = reinterpret_cast<const float4*>(k[c * 9 + t]);
#pragma unroll
            for (int o = 0; o < O; o += 4) {
                const float4 u = q[o / 4];
                sum[o] += u.x * v, sum[o + 1] += u.y * v, sum[o + 2] += u.z * v, sum[o + 3] += u.w * v;
            }
        }
#pragma unroll
    for (int o = 0; o < O; o++) y[((n * O + o) * H + first + ty) * W + tx] = fmaxf(sum[o], 0.f);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    convolve<<<dim3(H / ROWS, B), dim3(W, ROWS), 0, stream>>>(in->x, p->conv_weight, p->conv_bias, out->out);
    return cudaGetLastError();
}
