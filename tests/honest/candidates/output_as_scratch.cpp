// The output is used as scratch memory: filled with the product first, then finished in place.
// task: affine
#include "contract.h"
#include <cmath>
#include <cstring>
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params* params, const hiera_outputs* outputs, void* workspace) {
    (void)workspace;
    float* y = outputs->out;
    memcpy(y, inputs->x, sizeof(float) * HIERA_NUMEL_out);
    for (int i = 0; i < HIERA_NUMEL_out; i++) y[i] *= params->weight[i % 256];
    for (int i = 0; i < HIERA_NUMEL_out; i++) y[i] = std::fmax(y[i] + params->bias[i % 256], 0.f);
    return 0;
}
