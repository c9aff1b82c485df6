// cuBLASLt with the RELU_BIAS epilogue. Row-major Y = X·Wᵀ + b is, column-major, Yᵀ = W·Xᵀ with the bias along N.
// The algorithm is chosen by the library's heuristic in hiera_prepare, which is not timed.
#include "contract.h"
#include <cublasLt.h>
#include <cuda_runtime.h>

constexpr int64_t M = HIERA_DIM_x_0, K = HIERA_DIM_x_1, N = HIERA_DIM_linear_weight_0;
constexpr size_t kWorkspace = 32u << 20;

static cublasLtHandle_t handle;
static cublasLtMatmulDesc_t operation;
static cublasLtMatrixLayout_t layout_w, layout_x, layout_y;
static cublasLtMatmulHeuristicResult_t best;

#define CHECK(call)                                  \
    do {                                             \
        if (int status = int(call)) return status;   \
    } while (0)

extern "C" size_t hiera_workspace_bytes(void) { return kWorkspace; }

static int describe(const float* bias) {
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    CHECK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    CHECK(cublasLtMatrixLayoutCreate(&layout_w, CUDA_R_32F, K, N, K));
    CHECK(cublasLtMatrixLayoutCreate(&layout_x, CUDA_R_32F, K, M, K));
    CHECK(cublasLtMatrixLayoutCreate(&layout_y, CUDA_R_32F, N, M, N));
    return 0;
}

extern "C" int hiera_prepare(const hiera_params* params, void*, cudaStream_t) {
    if (!handle) CHECK(cublasLtCreate(&handle));
    CHECK(describe(params->linear_bias));
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                               sizeof kWorkspace));
    int found = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(handle, operation, layout_w, layout_x, layout_y, layout_y, preference, 1,
                                         &best, &found));
    cublasLtMatmulPreferenceDestroy(preference);
    return found ? 0 : -1;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* params, const hiera_outputs* out, void* workspace,
                         cudaStream_t stream) {
    const float one = 1.f, zero = 0.f;
    return cublasLtMatmul(handle, operation, &one, params->linear_weight, layout_w, in->x, layout_x, &zero, out->out,
                          layout_y, out->out, layout_y, &best.algo, workspace, kWorkspace, stream);
}
