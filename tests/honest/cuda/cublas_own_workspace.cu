// cuBLAS works in our workspace, on a handle that is made in hiera_prepare.
// task: matmul
// space: libraries
#include "contract.h"
#include <cublas_v2.h>
static const size_t BYTES = 32 << 20;
static cublasHandle_t handle;
extern "C" size_t hiera_workspace_bytes(void) { return BYTES; }
extern "C" int hiera_prepare(const hiera_params*, void*, cudaStream_t) {
    return handle ? 0 : (int)cublasCreate(&handle);
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    const int n = 1024;
    const float one = 1, zero = 0;
    cublasSetStream(handle, stream);
    cublasSetWorkspace(handle, workspace, BYTES);
    return cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, p->fc_weight, n, in->x, n, &zero, out->out, n);
}
