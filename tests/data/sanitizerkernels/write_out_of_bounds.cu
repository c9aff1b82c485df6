// One thread writes past the end of the output.
#include "contract.h"
static const int N = 1000;
__global__ void write_out_of_bounds_kernel(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= N) y[i] = 2 * x[i < N ? i : 0];  // planted
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* ws, cudaStream_t stream) {
    (void)ws;
    write_out_of_bounds_kernel<<<4, 256, 0, stream>>>(in->x, out->out);
    return (int)cudaGetLastError();
}
