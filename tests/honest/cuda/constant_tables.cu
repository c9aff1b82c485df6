// hiera_prepare copies the parameters into constant memory; hiera_run reads nothing else of them.
// task: affine
#include "contract.h"
__constant__ float weight[256], bias[256];
__global__ void affine(const float* x, float* y) {
    int row = threadIdx.x + blockIdx.x * blockDim.x;
    for (int c = 0; c < 256; c++) y[row * 256 + c] = fmaxf(x[row * 256 + c] * weight[c] + bias[c], 0.f);
}
extern "C" int hiera_prepare(const hiera_params* p, void*, cudaStream_t stream) {
    cudaMemcpyToSymbolAsync(weight, p->weight, sizeof weight, 0, cudaMemcpyDeviceToDevice, stream);
    return cudaMemcpyToSymbolAsync(bias, p->bias, sizeof bias, 0, cudaMemcpyDeviceToDevice, stream);
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    affine<<<16, 32, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
