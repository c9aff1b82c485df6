// Tiles of 4 x 4 results: each loaded vector is used four times.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int M = HIERA_DIM_x_0, K = HIERA_DIM_x_1, N = HIERA_DIM_out_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
#pragma omp parallel for
    for (int i = 0; i < M; i += 4)
        for (int j = 0; j < N; j += 4) {
            float c[4][4] = {};
            for (int u = 0; u < 4; u++)
                for (int v = 0; v < 4; v++) {
                    float s = 0;
                    const float *x = in->x + (i + u) * K, *w = p->fc_weight + (j + v) * K;
#pragma omp simd reduction(+ : s)
                    for (int k = 0; k < K; k++) s += x[k] * w[k];
                    c[u][v] = s + p->fc_bias[j + v];
                }
            for (int u = 0; u < 4; u++)
                for (int v = 0; v < 4; v++) out->out[(i + u) * N + j + v] = c[u][v] > 0 ? c[u][v] : 0;
        }
    return 0;
}
