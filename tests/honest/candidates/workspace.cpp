// Intermediate results lie in the workspace, which holds the last call's values at first.
// task: softmax
#include "contract.h"
extern "C" size_t hiera_workspace_bytes(void) { return sizeof(float) * HIERA_NUMEL_x; }
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params*, const hiera_outputs* outputs, void* workspace) {
    float* e = static_cast<float*>(workspace);
    const int n = HIERA_DIM_x_1;
    for (int r = 0; r < HIERA_DIM_x_0; r++) {
        const float* x = inputs->x + r * n;
        float top = x[0];
        double sum = 0;
        for (int j = 1; j < n; j++) top = x[j] > top ? x[j] : top;
        for (int j = 0; j < n; j++) sum += e[j] = expf(x[j] - top);
        for (int j = 0; j < n; j++) outputs->out[r * n + j] = (float)(e[j] / sum);
    }
    return 0;
}
