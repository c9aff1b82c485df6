// Four GiB are written, with streaming stores: more than 2^31 bytes, so offsets are wide.
// task: outer
#include "contract.h"
static const int D = 32768;
__global__ void outer(const float* a, const float* b, float* y) {
    const float left = a[blockIdx.x];
    for (int c = threadIdx.x; c < D / 4; c += blockDim.x) {
        float4 v = ((const float4*)b)[c];
        __stcs((float4*)(y + (size_t)blockIdx.x * D) + c, make_float4(left * v.x, left * v.y, left * v.z, left * v.w));
    }
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    outer<<<D, 512, 0, stream>>>(in->a, in->b, out->out);
    return cudaGetLastError();
}
