// Rows are added as they lie in memory; one thread.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int R = HIERA_DIM_x_0, C = HIERA_DIM_x_1;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int c = 0; c < C; c++) out->out[c] = 0;
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) out->out[c] += in->x[size_t(r) * C + c];
    return 0;
}
