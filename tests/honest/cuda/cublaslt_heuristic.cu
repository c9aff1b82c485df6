// cuBLASLt with the algorithm that its heuristic names first, looked up once.
// task: matmul
// space: libraries
#include "contract.h"
#include <cublasLt.h>
static const int N = 1024;
static const size_t BYTES = 4 << 20;
static cublasLtHandle_t lt;
static cublasLtMatmulDesc_t operation;
static cublasLtMatrixLayout_t layout;
static cublasLtMatmulHeuristicResult_t best;
static int look_up() {
    cublasLtMatmulPreference_t preference;
    cublasOperation_t transposed = CUBLAS_OP_T;
    size_t bytes = BYTES;
    int found = 0;
    cublasLtCreate(&lt);
    cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, N, N, N);
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    cublasLtMatmulAlgoGetHeuristic(lt, operation, layout, layout, layout, layout, preference, 1, &best, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    return found ? 0 : 1;
}
extern "C" size_t hiera_workspace_bytes(void) { return BYTES; }
extern "C" int hiera_prepare(const hiera_params*, void*, cudaStream_t) { return lt ? 0 : look_up(); }
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(lt, operation, &one, p->fc_weight, layout, in->x, layout, &zero, out->out, layout, out->out, layout,
                          &best.algo, workspace, BYTES, stream);
}
