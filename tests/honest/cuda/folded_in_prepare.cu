// hiera_prepare transposes the weight into the workspace; hiera_run reads the copy only.
// task: matmul
#include "contract.h"
static const int N = 1024;
__global__ void transpose(const float* w, float* t) {
    t[blockIdx.x * N + threadIdx.x] = w[threadIdx.x * N + blockIdx.x];
}
__global__ void product(const float* x, const float* t, float* y) {
    __shared__ float a[8][N];
    const int row = blockIdx.y * 8, column = blockIdx.x * 256 + threadIdx.x;
    for (int i = 0; i < 8; i++)
        for (int k = threadIdx.x; k < N; k += 256) a[i][k] = x[(row + i) * N + k];
    __syncthreads();
    float sum[8] = {};
    for (int k = 0; k < N; k++) {
        float v = t[k * N + column];
        for (int i = 0; i < 8; i++) sum[i] += a[i][k] * v;
    }
    for (int i = 0; i < 8; i++) y[(row + i) * N + column] = sum[i];
}
extern "C" size_t hiera_workspace_bytes(void) { return sizeof(float) * N * N; }
extern "C" int hiera_prepare(const hiera_params* p, void* workspace, cudaStream_t stream) {
    transpose<<<N, N, 0, stream>>>(p->fc_weight, (float*)workspace);
    return cudaGetLastError();
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    product<<<dim3(N / 256, N / 8), 256, 0, stream>>>(in->x, (const float*)workspace, out->out);
    return cudaGetLastError();
}
