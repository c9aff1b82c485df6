// A thread walks down a column with its 3 x 3 window in registers: three loads per result.
#include "contract.h"

const int B = HIERA_DIM_x_0, C = HIERA_DIM_x_1, H = HIERA_DIM_x_2, W = HIERA_DIM_x_3;
const int STRIPS = 4, ROWS = H / STRIPS;

__global__ void convolve(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ bias, float* __restrict__ y) {
    const int tx = threadIdx.x, c = blockIdx.x % C, first = threadIdx.y * ROWS;
    const float* plane = x + size_t(blockIdx.x) * H * W;
    float* result = y + size_t(blockIdx.x) * H * W;
    float k[9], window[3][3];
#pragma unroll
    for (int i = 0; i < 9; i++) k[i] = w[c * 9 + i];
    const float b = bias[c];
    auto load = [&](int r, float* to) {
        const bool inside = r >= 0 && r < H;
        const float* row = plane + r * W + tx;
        to[0] = inside && tx > 0 ? row[-1] : 0.f;
        to[1] = inside ? row[0] : 0.f;
        to[2] = inside && tx < W - 1 ? row[1] : 0.f;
    };
    load(first - 1, window[0]);
    load(first, window[1]);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        load(first + i + 1, window[(i + 2) % 3]);
        float sum = b;
#pragma unroll
        for (int t = 0; t < 9; t++) sum += k[t] * window[(i + t / 3) % 3][t % 3];
        result[(first + i) * W + tx] = sum;
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    convolve<<<B * C, dim3(W, STRIPS), 0, stream>>>(in->x, p->conv_weight, p->conv_bias, out->out);
    return cudaGetLastError();
}
