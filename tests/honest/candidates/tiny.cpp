// A kernel of a microsecond: sixteen elements.
// task: tiny
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params*, const hiera_outputs* outputs, void*) {
    for (int i = 0; i < HIERA_NUMEL_out; i++) outputs->out[i] = 2 * inputs->x[i];
    return 0;
}
