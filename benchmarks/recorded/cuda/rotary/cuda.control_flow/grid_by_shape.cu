// The grid has the tensor's shape, so that no index is divided; the columns are unrolled without bounds checks.
#include "contract.h"

const int B = HIERA_DIM_x_0, S = HIERA_DIM_x_1, H = HIERA_DIM_cos_1, THREADS = 256;

__global__ void rotate(const float* __restrict__ x, const float* __restrict__ cosines, const float* __restrict__ sines, float* __restrict__ y) {
    const int row = (blockIdx.y * S + blockIdx.x) * 2 * H, angle = blockIdx.x * H;
#pragma unroll
    for (int k = 0; k < H / THREADS; k++) {
        const int i = k * THREADS + threadIdx.x;
        const float a = x[row + i], b = x[row + H + i], c = cosines[angle + i], s = sines[angle + i];
        y[row + i] = a * c - b * s;
        y[row + H + i] = b * c + a * s;
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    rotate<<<dim3(S, B), THREADS, 0, stream>>>(in->x, in->cos, in->sin, out->out);
    return cudaGetLastError();
}
