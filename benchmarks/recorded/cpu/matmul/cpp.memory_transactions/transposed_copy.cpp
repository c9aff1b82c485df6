// B is transposed first, so that both operands are read in order.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int M = HIERA_DIM_out_0, N = HIERA_DIM_out_1, K = HIERA_DIM_a_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    std::vector<float> t(size_t(N) * K);
    for (int k = 0; k < K; k++)
        for (int j = 0; j < N; j++) t[j * K + k] = in->b[k * N + j];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float s = 0;
            for (int k = 0; k < K; k++) s += in->a[i * K + k] * t[j * K + k];
            out->out[i * N + j] = s;
        }
    return 0;
}
