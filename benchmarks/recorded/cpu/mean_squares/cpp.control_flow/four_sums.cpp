// Four sums by hand; one thread.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int r = 0; r < R; r++) {
        const float* x = in->x + size_t(r) * C;
        float a = 0, b = 0, d = 0, e = 0;
        for (int c = 0; c < C; c += 4) a += x[c] * x[c], b += x[c + 1] * x[c + 1], d += x[c + 2] * x[c + 2], e += x[c + 3] * x[c + 3];
        out->out[r] = (a + b + d + e) / C;
    }
    return 0;
}
