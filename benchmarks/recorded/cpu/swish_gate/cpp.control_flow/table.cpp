// The exponential from a table of 1024 steps (too coarse).
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_out_1;
static float table[1025];

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int i = 0; i <= 1024; i++) table[i] = expf(-i / 64.0f);
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) {
            const float a = in->x[size_t(r) * 2 * C + c], m = fabsf(a);
            const float e = m < 16 ? table[int(m * 64 + 0.5f)] : 0;
            out->out[size_t(r) * C + c] = (a < 0 ? a * e : a) / (1 + e) * in->x[size_t(r) * 2 * C + C + c];
        }
    return 0;
}
