// Split-K: four blocks share each tile of 64 x 64, a second kernel adds their sums.
#include "contract.h"
static const int N = 1024, T = 64, K = 16, SPLITS = 4;

__global__ void product(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ partial) {
    __shared__ float a[T][K + 1], b[T][K + 1];
    const int row = blockIdx.y * T, column = blockIdx.x * T, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int first = blockIdx.z * (N / SPLITS);
    float sum[4][4] = {};
    for (int k0 = first; k0 < first + N / SPLITS; k0 += K) {
        for (int i = 0; i < 4; i++) {
            a[ty + 16 * i][tx] = x[(row + ty + 16 * i) * N + k0 + tx];
            b[ty + 16 * i][tx] = w[(column + ty + 16 * i) * N + k0 + tx];
        }
        __syncthreads();
        for (int k = 0; k < K; k++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += a[ty + 16 * i][k] * b[tx + 16 * j][k];
        __syncthreads();
    }
    partial += blockIdx.z * N * N;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) partial[(row + ty + 16 * i) * N + column + tx + 16 * j] = sum[i][j];
}

__global__ void add(const float* __restrict__ partial, float* __restrict__ y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k < SPLITS; k++) s += partial[k * N * N + i];
    y[i] = s;
}

extern "C" size_t hiera_workspace_bytes(void) { return sizeof(float) * SPLITS * N * N; }
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    product<<<dim3(N / T, N / T, SPLITS), 256, 0, stream>>>(in->x, p->fc_weight, (float*)workspace);
    add<<<N * N / 256, 256, 0, stream>>>((const float*)workspace, out->out);
    return cudaGetLastError();
}
