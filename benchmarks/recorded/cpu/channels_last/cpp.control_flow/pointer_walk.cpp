// One index that is carried along instead of products; one thread.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int B = HIERA_DIM_x_0, C = HIERA_DIM_x_1, S = HIERA_DIM_x_2 * HIERA_DIM_x_3;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    float* y = out->out;
    for (int b = 0; b < B; b++)
        for (int s = 0; s < S; s++) {
            const float* x = in->x + size_t(b) * C * S + s;
            for (int c = 0; c < C; c++, x += S) *y++ = *x;
        }
    return 0;
}
