// A block a row; CUB loads, reduces over the block and stores.
#include "contract.h"
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_store.cuh>
#include <cuda/functional>

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1, THREADS = 256;

__global__ void __launch_bounds__(THREADS) softmax(const float* __restrict__ x, float* __restrict__ y) {
    using Reduce = cub::BlockReduce<float, THREADS>;
    __shared__ typename Reduce::TempStorage storage[2];
    __shared__ float shared_top, shared_sum;
    float v[C / THREADS];
    cub::LoadDirectStriped<THREADS>(threadIdx.x, x + size_t(blockIdx.x) * C, v);
    const float top = Reduce(storage[0]).Reduce(v, cuda::maximum<float>{});
    if (threadIdx.x == 0) shared_top = top;
    __syncthreads();
    for (float& e : v) e = expf(e - shared_top);
    const float sum = Reduce(storage[1]).Sum(v);
    if (threadIdx.x == 0) shared_sum = sum;
    __syncthreads();
    for (float& e : v) e /= shared_sum;
    cub::StoreDirectStriped<THREADS>(threadIdx.x, y + size_t(blockIdx.x) * C, v);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    softmax<<<R, THREADS, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
