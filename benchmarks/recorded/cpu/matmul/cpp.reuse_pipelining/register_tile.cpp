// Tiles of 4 x 32 results in registers; threads over row blocks.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int M = HIERA_DIM_out_0, N = HIERA_DIM_out_1, K = HIERA_DIM_a_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
#pragma omp parallel for
    for (int i = 0; i < M; i += 4)
        for (int j = 0; j < N; j += 32) {
            float c[4][32] = {};
            for (int k = 0; k < K; k++) {
                const float* b = in->b + k * N + j;
                for (int u = 0; u < 4; u++) {
                    const float a = in->a[(i + u) * K + k];
#pragma omp simd
                    for (int v = 0; v < 32; v++) c[u][v] += a * b[v];
                }
            }
            for (int u = 0; u < 4; u++)
                for (int v = 0; v < 32; v++) out->out[(i + u) * N + j + v] = c[u][v];
        }
    return 0;
}
