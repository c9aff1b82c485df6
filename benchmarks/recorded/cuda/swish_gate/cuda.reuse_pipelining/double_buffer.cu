// Blocks that stay copy the next tile asynchronously into shared memory while they compute this one.
#include "contract.h"
#include <cuda_pipeline.h>

const int R = HIERA_DIM_out_0, C = HIERA_DIM_out_1, THREADS = 256, ROW = C / 4, TILES = R * ROW / THREADS;

__device__ float gate(float a, float b) { return a / (1.0f + expf(-a)) * b; }

__global__ void gates(const float4* __restrict__ x, float4* __restrict__ y) {
    __shared__ float4 left[2][THREADS], right[2][THREADS];
    auto load = [&](int stage, int tile) {
        if (tile < TILES) {
            const int i = tile * THREADS + threadIdx.x;
            const float4* from = x + i / ROW * 2 * ROW + i % ROW;
            __pipeline_memcpy_async(&left[stage][threadIdx.x], from, 16);
            __pipeline_memcpy_async(&right[stage][threadIdx.x], from + ROW, 16);
        }
        __pipeline_commit();
    };
    int stage = 0;
    load(0, blockIdx.x);
    for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x, stage ^= 1) {
        load(stage ^ 1, tile + gridDim.x);
        __pipeline_wait_prior(1);
        const float4 a = left[stage][threadIdx.x], b = right[stage][threadIdx.x];
        y[tile * THREADS + threadIdx.x] = make_float4(gate(a.x, b.x), gate(a.y, b.y), gate(a.z, b.z), gate(a.w, b.w));
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    gates<<<132 * 8, THREADS, 0, stream>>>((const float4*)in->x, (float4*)out->out);
    return cudaGetLastError();
}
