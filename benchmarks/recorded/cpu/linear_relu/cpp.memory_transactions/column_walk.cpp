// The weight is walked by columns (bad: strided).
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int M = HIERA_DIM_x_0, K = HIERA_DIM_x_1, N = HIERA_DIM_out_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int i = 0; i < M; i++) {
        float* c = out->out + i * N;
        for (int j = 0; j < N; j++) c[j] = p->fc_bias[j];
        for (int k = 0; k < K; k++)
            for (int j = 0; j < N; j++) c[j] += in->x[i * K + k] * p->fc_weight[j * K + k];
        for (int j = 0; j < N; j++) c[j] = c[j] > 0 ? c[j] : 0;
    }
    return 0;
}
