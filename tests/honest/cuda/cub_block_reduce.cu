// CUB's block reduction, in the space that allows libraries.
// task: row_means
// space: libraries
#include "contract.h"
#include <cub/block/block_reduce.cuh>
__global__ void means(const float* x, float* y) {
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage storage;
    float sum = 0;
    for (int i = threadIdx.x; i < 4096; i += 256) sum += x[blockIdx.x * 4096 + i];
    sum = Reduce(storage).Sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum / 4096;
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    means<<<64, 256, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
