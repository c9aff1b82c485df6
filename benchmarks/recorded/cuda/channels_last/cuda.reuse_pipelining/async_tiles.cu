// A block walks seven tiles of 64 channels x 32 pixels; cp.async fetches the next one meanwhile.
#include "contract.h"
#include <cuda_pipeline.h>

const int B = HIERA_DIM_x_0, C = HIERA_DIM_x_1, P = HIERA_DIM_x_2 * HIERA_DIM_x_3;
const int T = 32, TILES = 7;
static_assert(C == 64 && P % (T * TILES) == 0, "tiles fit exactly");

__global__ void permute(const float* __restrict__ x, float* __restrict__ y) {
    __shared__ float tile[2][C][T + 1];
    const int n = blockIdx.y, first = blockIdx.x * TILES * T;
    auto fetch = [&](int t) {
        const int lane = threadIdx.x % T;
        for (int c = threadIdx.x / T; c < C; c += 8)
            __pipeline_memcpy_async(&tile[t % 2][c][lane], x + (n * C + c) * P + first + t * T + lane, 4);
    };
    fetch(0);
    __pipeline_commit();
    for (int t = 0; t < TILES; t++) {
        if (t + 1 < TILES) fetch(t + 1);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        const int c = threadIdx.x % C;
        for (int i = threadIdx.x / C; i < T; i += 4) y[(n * P + first + t * T + i) * C + c] = tile[t % 2][c][i];
        __syncthreads();
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    permute<<<dim3(P / (T * TILES), B), 256, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
