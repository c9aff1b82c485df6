// Blocks of 4096 elements, operator by operator inside of a block; threads over blocks.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int N = HIERA_NUMEL_x;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
#pragma omp parallel for
    for (int b = 0; b < N; b += 4096) {
        float t[4096];
        for (int i = 0; i < 4096; i++) t[i] = in->x[b + i] * 1.5f + 0.5f;
        for (int i = 0; i < 4096; i++) t[i] = t[i] > 0 ? t[i] : 0;
        for (int i = 0; i < 4096; i++) out->out[b + i] = t[i] * in->y[b + i] - in->x[b + i];
    }
    return 0;
}
