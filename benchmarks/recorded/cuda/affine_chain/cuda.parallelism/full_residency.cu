// As many blocks as the chip holds at once stride over all elements, four of them unrolled.
#include "contract.h"

const int N = HIERA_NUMEL_x, C = HIERA_DIM_x_1, THREADS = 256, RESIDENT = 2048 / THREADS;

__device__ float chain(float x, float scale, float bias) {
    float v = x * scale + bias;
    v = v < -3.0f ? -3.0f : v > 3.0f ? 3.0f : v;
    return 0.5f * v * (1.0f + erff(v * 0.70710678f)) + 0.1f * x;
}

__global__ void __launch_bounds__(THREADS, RESIDENT)
chains(const float* __restrict__ x, const float* __restrict__ scale, const float* __restrict__ bias, float* __restrict__ y) {
#pragma unroll 4
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < N; i += gridDim.x * THREADS) y[i] = chain(x[i], scale[i % C], bias[i % C]);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    chains<<<132 * RESIDENT, THREADS, 0, stream>>>(in->x, p->scale, p->bias, out->out);
    return cudaGetLastError();
}
