// Split-K: eight blocks share each group of columns, a second kernel adds their sums.
#include "contract.h"
static const int M = 16, K = 4096, N = 4096, SPLITS = 8, PART = K / 2 / SPLITS;

__global__ void __launch_bounds__(256) product(const __half2* __restrict__ x, const __half2* __restrict__ w, float* __restrict__ partial) {
    const int column = blockIdx.x * 16 + threadIdx.x / 32 * 2, lane = threadIdx.x % 32, first = blockIdx.y * PART;
    float sum[M][2] = {};
    for (int k = first + lane; k < first + PART; k += 32) {
        const float2 v0 = __half22float2(w[column * (K / 2) + k]), v1 = __half22float2(w[(column + 1) * (K / 2) + k]);
        for (int m = 0; m < M; m++) {
            const float2 u = __half22float2(x[m * (K / 2) + k]);
            sum[m][0] += u.x * v0.x + u.y * v0.y;
            sum[m][1] += u.x * v1.x + u.y * v1.y;
        }
    }
    for (int m = 0; m < M; m++)
        for (int j = 0; j < 2; j++) {
            for (int d = 16; d; d /= 2) sum[m][j] += __shfl_xor_sync(~0u, sum[m][j], d);
            if (lane == m * 2 + j) partial[(blockIdx.y * M + m) * N + column + j] = sum[m][j];
        }
}

__global__ void add(const float* __restrict__ partial, __half* __restrict__ y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k < SPLITS; k++) s += partial[k * M * N + i];
    y[i] = __float2half(s);
}

extern "C" size_t hiera_workspace_bytes(void) { return sizeof(float) * SPLITS * M * N; }
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    product<<<dim3(N / 16, SPLITS), 256, 0, stream>>>((const __half2*)in->x, (const __half2*)p->fc_weight, (float*)workspace);
    add<<<M * N / 256, 256, 0, stream>>>((const float*)workspace, out->out);
    return cudaGetLastError();
}
