// A warp walks one row of the weight, eight halves a load, and uses them for all 16 results.
#include "contract.h"
#include <cstring>
static const int M = 16, K = 4096, N = 4096;

__device__ void unpack(uint4 v, float* to) {
    __half2 h[4];
    memcpy(h, &v, sizeof v);
    for (int i = 0; i < 4; i++) to[2 * i] = __low2float(h[i]), to[2 * i + 1] = __high2float(h[i]);
}

__global__ void __launch_bounds__(256) product(const uint4* __restrict__ x, const uint4* __restrict__ w, __half* __restrict__ y) {
    const int column = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum[M] = {};
    for (int k = lane; k < K / 8; k += 32) {
        float v[8];
        unpack(w[column * (K / 8) + k], v);
        for (int m = 0; m < M; m++) {
            float u[8];
            unpack(x[m * (K / 8) + k], u);
            for (int l = 0; l < 8; l++) sum[m] += u[l] * v[l];
        }
    }
    for (int m = 0; m < M; m++) {
        for (int d = 16; d; d /= 2) sum[m] += __shfl_xor_sync(~0u, sum[m], d);
        if (lane == m) y[m * N + column] = __float2half(sum[m]);
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<N / 8, 256, 0, stream>>>((const uint4*)in->x, (const uint4*)p->fc_weight, out->out);
    return cudaGetLastError();
}
