// Rows of the result over threads, i-k-j order.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int M = HIERA_DIM_out_0, N = HIERA_DIM_out_1, K = HIERA_DIM_a_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
#pragma omp parallel for
    for (int i = 0; i < M; i++) {
        float* c = out->out + i * N;
        for (int j = 0; j < N; j++) c[j] = 0;
        for (int k = 0; k < K; k++)
            for (int j = 0; j < N; j++) c[j] += in->a[i * K + k] * in->b[k * N + j];
    }
    return 0;
}
