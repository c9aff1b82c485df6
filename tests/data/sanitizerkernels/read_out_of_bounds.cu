// The last thread reads past the end of the input.
#include "contract.h"
static const int N = 1000;
__global__ void read_out_of_bounds_kernel(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    float next = x[i + 1];  // planted
    y[i] = 2 * x[i] + (next == -1 ? 1 : 0);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* ws, cudaStream_t stream) {
    (void)ws;
    read_out_of_bounds_kernel<<<4, 256, 0, stream>>>(in->x, out->out);
    return (int)cudaGetLastError();
}
