// Each call captures the given stream itself, and launches the graph on it.
// task: affine
#include "contract.h"
__global__ void affine(const float* x, const float* w, const float* b, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = fmaxf(x[i] * w[i % 256] + b[i % 256], 0.f);
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaError_t code = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (code) return code;
    affine<<<HIERA_NUMEL_out / 256, 256, 0, stream>>>(in->x, p->weight, p->bias, out->out);
    if ((code = cudaStreamEndCapture(stream, &graph))) return code;
    if ((code = cudaGraphInstantiate(&executable, graph, 0))) return code;
    code = cudaGraphLaunch(executable, stream);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    return code;
}
