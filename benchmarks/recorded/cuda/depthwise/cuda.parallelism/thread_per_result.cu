// One thread per result, every lane busy, eight blocks per multiprocessor.
#include "contract.h"

const int B = HIERA_DIM_x_0, C = HIERA_DIM_x_1, H = HIERA_DIM_x_2, W = HIERA_DIM_x_3;
const int THREADS = 256;
static_assert(B * C * H * W % THREADS == 0, "the grid fits exactly");

__global__ void __launch_bounds__(THREADS, 8) convolve(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ bias, float* __restrict__ y) {
    const int i = blockIdx.x * THREADS + threadIdx.x, column = i % W, r = i / W % H, c = i / (H * W) % C;
    float sum = bias[c];
#pragma unroll
    for (int dr = -1; dr <= 1; dr++)
#pragma unroll
        for (int dc = -1; dc <= 1; dc++)
            if (r + dr >= 0 && r + dr < H && column + dc >= 0 && column + dc < W)
                sum += w[c * 9 + (dr + 1) * 3 + dc + 1] * x[i + dr * W + dc];
    y[i] = sum;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    convolve<<<B * C * H * W / THREADS, THREADS, 0, stream>>>(in->x, p->conv_weight, p->conv_bias, out->out);
    return cudaGetLastError();
}
