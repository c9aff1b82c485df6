// A tile through shared memory, so that reads and writes are both coalesced.
#include "contract.h"

const int N = HIERA_DIM_x_0, T = 32, ROWS = 8;

__global__ void add(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out) {
    __shared__ float tile[T][T + 1];
    const int c = blockIdx.x * T, r = blockIdx.y * T;
    for (int i = threadIdx.y; i < T; i += ROWS) tile[i][threadIdx.x] = x[size_t(c + i) * N + r + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < T; i += ROWS) {
        const size_t at = size_t(r + i) * N + c + threadIdx.x;
        out[at] = tile[threadIdx.x][i] + y[at];
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    add<<<dim3(N / T, N / T), dim3(T, ROWS), 0, stream>>>(in->x, in->y, out->out);
    return cudaGetLastError();
}
