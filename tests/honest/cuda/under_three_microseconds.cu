// One warp on sixteen elements: a kernel that takes less than its launch.
// task: tiny
#include "contract.h"
__global__ void twice(const float* x, float* y) {
    if (threadIdx.x < HIERA_NUMEL_out) y[threadIdx.x] = 2 * x[threadIdx.x];
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    twice<<<1, 32, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
