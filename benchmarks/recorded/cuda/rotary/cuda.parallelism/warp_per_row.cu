// A warp a row; each lane has the loads of four pairs in flight.
#include "contract.h"

const int B = HIERA_DIM_x_0, S = HIERA_DIM_x_1, H = HIERA_DIM_cos_1, WARPS = 8, EACH = 4;

__global__ void rotate(const float* __restrict__ x, const float* __restrict__ cosines, const float* __restrict__ sines, float* __restrict__ y) {
    const int row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    x += row * 2 * H;
    y += row * 2 * H;
    cosines += row % S * H;
    sines += row % S * H;
    for (int first = lane; first < H; first += 32 * EACH) {
        float a[EACH], b[EACH], c[EACH], s[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int i = first + 32 * k;
            a[k] = x[i], b[k] = x[H + i], c[k] = cosines[i], s[k] = sines[i];
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            y[first + 32 * k] = a[k] * c[k] - b[k] * s[k];
            y[H + first + 32 * k] = b[k] * c[k] + a[k] * s[k];
        }
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    rotate<<<B * S / WARPS, WARPS * 32, 0, stream>>>(in->x, in->cos, in->sin, out->out);
    return cudaGetLastError();
}
