// Planted: an atomic addition in global memory for every element, and all of them go to 64 addresses.
#include "contract.h"
#include <cuda_runtime.h>

constexpr int kCount = HIERA_DIM_x_0 * HIERA_DIM_x_1, kColumns = HIERA_DIM_x_1;

__global__ void sums(const int* x, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&out[i % kColumns], x[i]);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    cudaMemsetAsync(out->out, 0, kColumns * sizeof(int), stream);
    sums<<<kCount / 256, 256, 0, stream>>>((const int*)in->x, (int*)out->out);
    return cudaGetLastError();
}
