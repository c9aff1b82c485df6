// Nothing is wrong: a workspace that is written before it is read, a barrier between the accesses to shared memory.
#include "contract.h"
static const int N = 1000;

extern "C" size_t hiera_workspace_bytes(void) { return N * sizeof(float); }

__global__ void doubled(const float* x, float* ws) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) ws[i] = 2 * x[i];
}

__global__ void turned(const float* ws, float* y) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[255 - threadIdx.x] = i < N ? ws[i] : 0;
    __syncthreads();
    if (i < N) y[i] = tile[255 - threadIdx.x];
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* ws, cudaStream_t stream) {
    doubled<<<4, 256, 0, stream>>>(in->x, static_cast<float*>(ws));
    turned<<<4, 256, 0, stream>>>(static_cast<const float*>(ws), out->out);
    return (int)cudaGetLastError();
}
