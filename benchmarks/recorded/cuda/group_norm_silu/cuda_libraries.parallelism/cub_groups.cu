// A block a group; CUB loads, reduces over the block and stores.
#include "contract.h"
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_store.cuh>

const int N = HIERA_DIM_x_0, GROUPS = 32, CHANNELS = HIERA_DIM_x_1 / GROUPS, PLANE = HIERA_DIM_x_2 * HIERA_DIM_x_3;
const int SIZE = CHANNELS * PLANE, THREADS = 256;

__device__ float silu(float v) { return v / (1 + expf(-v)); }

__global__ void __launch_bounds__(THREADS)
group_norm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ y) {
    using Reduce = cub::BlockReduce<float, THREADS>;
    __shared__ typename Reduce::TempStorage storage[2];
    __shared__ float shared_mean, shared_inverse;
    float v[SIZE / THREADS], squares = 0;
    cub::LoadDirectStriped<THREADS>(threadIdx.x, x + size_t(blockIdx.x) * SIZE, v);
    const float sum = Reduce(storage[0]).Sum(v);
    if (threadIdx.x == 0) shared_mean = sum / SIZE;
    __syncthreads();
    for (float& e : v) e -= shared_mean, squares += e * e;
    squares = Reduce(storage[1]).Sum(squares);
    if (threadIdx.x == 0) shared_inverse = rsqrtf(squares / SIZE + 1e-5f);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SIZE / THREADS; k++) {
        const int channel = blockIdx.x % GROUPS * CHANNELS + k * THREADS / PLANE;
        v[k] = silu(v[k] * shared_inverse * weight[channel] + bias[channel]);
    }
    cub::StoreDirectStriped<THREADS>(threadIdx.x, y + size_t(blockIdx.x) * SIZE, v);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    group_norm<<<N * GROUPS, THREADS, 0, stream>>>(in->x, p->norm_weight, p->norm_bias, out->out);
    return cudaGetLastError();
}
