// No kernel of its own for the data: a copy on the stream, then one kernel that doubles in place.
// task: tiny
#include "contract.h"
__global__ void double_in_place(float* y) { y[threadIdx.x] += y[threadIdx.x]; }
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    cudaMemcpyAsync(out->out, in->x, sizeof(float) * HIERA_NUMEL_out, cudaMemcpyDefault, stream);
    double_in_place<<<1, HIERA_NUMEL_out, 0, stream>>>(out->out);
    return cudaGetLastError();
}
