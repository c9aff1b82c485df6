// A vector is read at an address that is no multiple of its size.
#include "contract.h"
static const int N = 1000;
__global__ void misaligned_kernel(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 100) return;
    float4 four = *reinterpret_cast<const float4*>(x + 1 + 4 * i);  // planted
    y[i] = four.x + four.y + four.z + four.w;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* ws, cudaStream_t stream) {
    (void)ws;
    misaligned_kernel<<<4, 256, 0, stream>>>(in->x, out->out);
    return (int)cudaGetLastError();
}
