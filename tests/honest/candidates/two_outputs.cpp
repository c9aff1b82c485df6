// Two outputs, values and places; written several times before they are final.
// task: row_max
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params*, const hiera_outputs* outputs, void*) {
    for (int r = 0; r < 128; r++) {
        outputs->out0[r] = inputs->x[r * 64];
        outputs->out1[r] = 0;
        for (int j = 1; j < 64; j++)
            if (inputs->x[r * 64 + j] > outputs->out0[r]) outputs->out0[r] = inputs->x[r * 64 + j], outputs->out1[r] = j;
    }
    return 0;
}
