// Coordinates are clamped, as a value taken twice changes no maximum: nine loads without a branch.
#include "contract.h"

const int P = HIERA_DIM_x_0 * HIERA_DIM_x_1, H = HIERA_DIM_x_2, W = HIERA_DIM_x_3, OH = HIERA_DIM_out_2, OW = HIERA_DIM_out_3;
const int ROWS = 4;
static_assert(H == 2 * OH && W == 2 * OW, "windows end inside: only the first row and column need the clamp");

__global__ void pool(const float* __restrict__ x, float* __restrict__ y) {
    const int c = threadIdx.x, r = blockIdx.x * ROWS + threadIdx.y;
    const float* plane = x + size_t(blockIdx.y) * H * W;
    const int rows[3] = {max(2 * r - 1, 0), 2 * r, 2 * r + 1}, columns[3] = {max(2 * c - 1, 0), 2 * c, 2 * c + 1};
    float top = -INFINITY;
#pragma unroll
    for (int i = 0; i < 9; i++) top = fmaxf(top, plane[rows[i / 3] * W + columns[i % 3]]);
    y[(size_t(blockIdx.y) * OH + r) * OW + c] = top;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    pool<<<dim3(OH / ROWS, P), dim3(OW, ROWS), 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
