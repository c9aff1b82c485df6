// Rows added in vectors, halves over threads.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int c = 0; c < C; c++) out->out[c] = 0;
#pragma omp parallel
    {
        float t[C] = {};
#pragma omp for nowait
        for (int r = 0; r < R; r++)
#pragma omp simd
            for (int c = 0; c < C; c++) t[c] += in->x[size_t(r) * C + c];
#pragma omp critical
        for (int c = 0; c < C; c++) out->out[c] += t[c];
    }
    return 0;
}
