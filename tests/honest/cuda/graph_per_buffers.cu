// Two kernels are captured into a graph on a stream of its own, once per set of buffers, and replayed on the given stream.
// task: affine
#include "contract.h"
#include <map>
#include <utility>
__global__ void multiply(const float* x, const float* w, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * w[i % 256];
}
__global__ void finish_in_place(const float* b, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = fmaxf(y[i] + b[i % 256], 0.f);
}
static std::map<std::pair<const float*, float*>, cudaGraphExec_t> graphs;
static cudaGraphExec_t captured(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out) {
    cudaGraphExec_t& found = graphs[{in->x, out->out}];
    if (found) return found;
    cudaStream_t own;
    cudaGraph_t graph;
    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    cudaStreamBeginCapture(own, cudaStreamCaptureModeThreadLocal);
    multiply<<<HIERA_NUMEL_out / 256, 256, 0, own>>>(in->x, p->weight, out->out);
    finish_in_place<<<HIERA_NUMEL_out / 256, 256, 0, own>>>(p->bias, out->out);
    cudaStreamEndCapture(own, &graph);
    cudaGraphInstantiate(&found, graph, 0);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(own);
    return found;
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    return cudaGraphLaunch(captured(in, p, out), stream);
}
