// Four sums by hand, so that additions do not wait for each other.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int r = 0; r < R; r++) {
        const float* x = in->x + size_t(r) * C;
        float a = 0, b = 0, c2 = 0, d = 0;
        for (int c = 0; c < C; c += 4) a += x[c] * x[c], b += x[c + 1] * x[c + 1], c2 += x[c + 2] * x[c + 2], d += x[c + 3] * x[c + 3];
        const float k = 1.0f / sqrtf(a + b + c2 + d);
        for (int c = 0; c < C; c++) out->out[size_t(r) * C + c] = x[c] * k;
    }
    return 0;
}
