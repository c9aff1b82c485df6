// cuBLASLt on the Tensor Cores with the bias in its epilogue, then GELU in a kernel of our own.
#include "contract.h"
#include <cstring>
#include <cublasLt.h>
static const int M = 2048, K = 1024, N = 2048;
static const size_t BYTES = 32 << 20;
static cublasLtHandle_t lt;
static cublasLtMatmulDesc_t operation;
static cublasLtMatrixLayout_t weight, input, result;
static cublasLtMatmulHeuristicResult_t best;
static bool ready;

__global__ void gelu(uint4* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 v = y[i];
    __half2 h[4];
    memcpy(h, &v, sizeof v);
    for (int l = 0; l < 4; l++) {
        const float2 f = __half22float2(h[l]);
        h[l] = __floats2half2_rn(0.5f * f.x * (1.0f + erff(f.x * 0.70710678f)), 0.5f * f.y * (1.0f + erff(f.y * 0.70710678f)));
    }
    memcpy(&v, h, sizeof v);
    y[i] = v;
}

static int set_bias(const __half* bias) {
    return cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
}

extern "C" size_t hiera_workspace_bytes(void) { return BYTES; }
extern "C" int hiera_prepare(const hiera_params* p, void*, cudaStream_t) {
    if (ready) return 0;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const size_t bytes = BYTES;
    cublasLtMatmulPreference_t preference;
    int found = 0;
    if (cublasLtCreate(&lt)) return 1;
    cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set_bias(p->fc_bias);
    cublasLtMatrixLayoutCreate(&weight, CUDA_R_16F, K, N, K);
    cublasLtMatrixLayoutCreate(&input, CUDA_R_16F, K, M, K);
    cublasLtMatrixLayoutCreate(&result, CUDA_R_16F, N, M, N);
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    cublasLtMatmulAlgoGetHeuristic(lt, operation, weight, input, result, result, preference, 1, &best, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    ready = found > 0;
    return ready ? 0 : 1;
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    const float one = 1, zero = 0;
    set_bias(p->fc_bias);
    const int failed = cublasLtMatmul(lt, operation, &one, p->fc_weight, weight, in->x, input, &zero, out->out, result, out->out, result,
                                      &best.algo, workspace, BYTES, stream);
    if (failed) return failed;
    gelu<<<M * N / 8 / 256, 256, 0, stream>>>((uint4*)out->out);
    return cudaGetLastError();
}
