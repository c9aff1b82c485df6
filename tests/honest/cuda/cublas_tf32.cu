// cuBLAS with TF32 products, which this contract allows.
// task: matmul
// space: libraries
// tf32: allowed
#include "contract.h"
#include <cublas_v2.h>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    static cublasHandle_t handle = nullptr;
    const int n = 1024;
    const float one = 1, zero = 0;
    if (!handle && cublasCreate(&handle)) return 1;
    cublasSetStream(handle, stream);
    return cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, p->fc_weight, CUDA_R_32F, n, in->x, CUDA_R_32F, n, &zero,
                        out->out, CUDA_R_32F, n, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT);
}
