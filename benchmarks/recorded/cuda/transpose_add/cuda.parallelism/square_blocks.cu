// One thread per result in blocks of 16 x 16, eight blocks per multiprocessor.
#include "contract.h"

const int N = HIERA_DIM_x_0, T = 16;

__global__ void __launch_bounds__(T * T, 8) add(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out) {
    const int c = blockIdx.x * T + threadIdx.x, r = blockIdx.y * T + threadIdx.y;
    out[size_t(r) * N + c] = x[size_t(c) * N + r] + y[size_t(r) * N + c];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    add<<<dim3(N / T, N / T), dim3(T, T), 0, stream>>>(in->x, in->y, out->out);
    return cudaGetLastError();
}
