// A large static table (zeros) and a static counter take part in the arithmetic without effect.
// task: linear
#include "contract.h"
static float table[1 << 18];
static unsigned calls;
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params* params, const hiera_outputs* outputs, void* workspace) {
    (void)workspace;
    calls++;
    for (int r = 0; r < 96; r++)
        for (int o = 0; o < 80; o++) {
            float sum = table[(calls * 7919u + r * 80 + o) % (1 << 18)];
            for (int j = 0; j < 192; j++) sum += inputs->x[r * 192 + j] * params->fc_weight[o * 192 + j];
            outputs->out[r * 80 + o] = sum;
        }
    return 0;
}
