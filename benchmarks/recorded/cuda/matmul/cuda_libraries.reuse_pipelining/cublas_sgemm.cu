// cuBLAS sgemm in plain float32, with its own tiling and pipelining.
#include "contract.h"
#include <cublas_v2.h>
static const int N = 1024;
static const size_t BYTES = 32 << 20;
static cublasHandle_t handle;

extern "C" size_t hiera_workspace_bytes(void) { return BYTES; }
extern "C" int hiera_prepare(const hiera_params*, void*, cudaStream_t) {
    if (handle) return 0;
    if (cublasCreate(&handle)) return 1;
    return cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH);
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    const float one = 1, zero = 0;
    cublasSetStream(handle, stream);
    cublasSetWorkspace(handle, workspace, BYTES);
    const int failed = cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, N, N, N, &one, p->fc_weight, N, in->x, N, &zero, out->out, N);
    return failed ? failed : cudaGetLastError();
}
