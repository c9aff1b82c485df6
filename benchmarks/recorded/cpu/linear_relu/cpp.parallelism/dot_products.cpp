// One dot product a result, rows over threads.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int M = HIERA_DIM_x_0, K = HIERA_DIM_x_1, N = HIERA_DIM_out_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
#pragma omp parallel for
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float s = p->fc_bias[j];
            for (int k = 0; k < K; k++) s += in->x[i * K + k] * p->fc_weight[j * K + k];
            out->out[i * N + j] = s > 0 ? s : 0;
        }
    return 0;
}
