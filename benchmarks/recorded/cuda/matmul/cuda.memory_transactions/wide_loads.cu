// float4 for every global load and store; the weight tile is turned in shared memory so that its reads are wide too.
#include "contract.h"
static const int N = 1024, T = 32;

__global__ void product(const float4* __restrict__ x, const float4* __restrict__ w, float4* __restrict__ y) {
    __shared__ alignas(16) float a[T][T + 4], b[T][T + 4];
    const int r = threadIdx.x / 8, q = threadIdx.x % 8, row = blockIdx.y * T + r, column = blockIdx.x * T;
    float4 sum = {0, 0, 0, 0};
    for (int k = 0; k < N / 4; k += T / 4) {
        *reinterpret_cast<float4*>(&a[r][q * 4]) = x[row * (N / 4) + k + q];
        const float4 v = w[(column + r) * (N / 4) + k + q];
        b[q * 4][r] = v.x, b[q * 4 + 1][r] = v.y, b[q * 4 + 2][r] = v.z, b[q * 4 + 3][r] = v.w;
        __syncthreads();
#pragma unroll 8
        for (int i = 0; i < T; i++) {
            const float s = a[r][i];
            const float4 u = *reinterpret_cast<const float4*>(&b[i][q * 4]);
            sum.x += s * u.x, sum.y += s * u.y, sum.z += s * u.z, sum.w += s * u.w;
        }
        __syncthreads();
    }
    y[row * (N / 4) + column / 4 + q] = sum;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<dim3(N / T, N / T), 256, 0, stream>>>((const float4*)in->x, (const float4*)p->fc_weight, (float4*)out->out);
    return cudaGetLastError();
}
