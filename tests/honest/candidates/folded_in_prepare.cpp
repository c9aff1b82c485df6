// hiera_prepare transposes the weight into the workspace; hiera_run reads the copy only.
// task: linear
#include "contract.h"
extern "C" size_t hiera_workspace_bytes(void) { return sizeof(float) * HIERA_NUMEL_fc_weight; }
extern "C" int hiera_prepare(const hiera_params* params, void* workspace) {
    float* t = static_cast<float*>(workspace);
    for (int o = 0; o < 80; o++)
        for (int j = 0; j < 192; j++) t[j * 80 + o] = params->fc_weight[o * 192 + j];
    return 0;
}
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params*, const hiera_outputs* outputs, void* workspace) {
    const float* t = static_cast<const float*>(workspace);
    for (int r = 0; r < 96; r++) {
        float sum[80] = {};
        for (int j = 0; j < 192; j++)
            for (int o = 0; o < 80; o++) sum[o] += inputs->x[r * 192 + j] * t[j * 80 + o];
        for (int o = 0; o < 80; o++) outputs->out[r * 80 + o] = sum[o];
    }
    return 0;
}
