// BLAS onto the bias, ReLU after it.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

#include <cblas.h>
const int M = HIERA_DIM_x_0, K = HIERA_DIM_x_1, N = HIERA_DIM_out_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int i = 0; i < M; i++) std::memcpy(out->out + i * N, p->fc_bias, sizeof(float) * N);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, M, N, K, 1, in->x, K, p->fc_weight, K, 1, out->out, N);
    for (int i = 0; i < M * N; i++) out->out[i] = out->out[i] > 0 ? out->out[i] : 0;
    return 0;
}
