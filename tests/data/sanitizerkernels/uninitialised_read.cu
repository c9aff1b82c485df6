// The workspace is read before anything was written to it.
#include "contract.h"
static const int N = 1000;
extern "C" size_t hiera_workspace_bytes(void) { return N * sizeof(float); }
__global__ void uninitialised_read_kernel(const float* x, float* y, const float* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    float sum = sums[i];  // planted
    y[i] = 2 * x[i] + (sum == 12345.f ? 1 : 0);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* ws, cudaStream_t stream) {
    (void)ws;
    uninitialised_read_kernel<<<4, 256, 0, stream>>>(in->x, out->out, static_cast<const float*>(ws));
    return (int)cudaGetLastError();
}
