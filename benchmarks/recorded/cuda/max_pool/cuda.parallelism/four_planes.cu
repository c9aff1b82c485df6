// The same pixel of four planes per thread: four independent windows in flight, every lane busy.
#include "contract.h"

const int P = HIERA_DIM_x_0 * HIERA_DIM_x_1, H = HIERA_DIM_x_2, W = HIERA_DIM_x_3, OH = HIERA_DIM_out_2, OW = HIERA_DIM_out_3;
const int THREADS = 256, PLANES = 4, STEP = P / PLANES;
static_assert(STEP * OH * OW % THREADS == 0, "the grid fits exactly");

__global__ void pool(const float* __restrict__ x, float* __restrict__ y) {
    const int i = blockIdx.x * THREADS + threadIdx.x, c = i % OW, r = i / OW % OH, plane = i / (OH * OW);
    float top[PLANES];
#pragma unroll
    for (int k = 0; k < PLANES; k++) top[k] = -INFINITY;
#pragma unroll
    for (int t = 0; t < 9; t++) {
        const int row = 2 * r + t / 3 - 1, column = 2 * c + t % 3 - 1;
        if (row < 0 || row >= H || column < 0 || column >= W) continue;
#pragma unroll
        for (int k = 0; k < PLANES; k++) top[k] = fmaxf(top[k], x[((plane + k * STEP) * H + row) * W + column]);
    }
#pragma unroll
    for (int k = 0; k < PLANES; k++) y[i + k * STEP * OH * OW] = top[k];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    pool<<<STEP * OH * OW / THREADS, THREADS, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
