// A transposed copy of the weight is kept, and made again whenever the weight has changed in any bit.
// task: linear
#include "contract.h"
#include <cstring>
static float seen[80 * 192], transposed[192 * 80];
static bool known;
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    if (!known || memcmp(seen, p->fc_weight, sizeof seen) != 0) {
        memcpy(seen, p->fc_weight, sizeof seen);
        for (int o = 0; o < 80; o++)
            for (int k = 0; k < 192; k++) transposed[k * 80 + o] = seen[o * 192 + k];
        known = true;
    }
    for (int r = 0; r < 96; r++) {
        float sum[80] = {};
        for (int k = 0; k < 192; k++)
            for (int o = 0; o < 80; o++) sum[o] += in->x[r * 192 + k] * transposed[k * 80 + o];
        memcpy(out->out + r * 80, sum, sizeof sum);
    }
    return 0;
}
