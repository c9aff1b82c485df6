// A function in several versions; the loader chooses one for this processor by a resolver.
// task: row_means
#include "contract.h"
__attribute__((target_clones("avx512f", "avx2", "default"), noinline)) static void means(const float* x, float* y) {
    for (int r = 0; r < 64; r++) {
        float s[16] = {};
        for (int j = 0; j < 4096; j += 16)
            for (int k = 0; k < 16; k++) s[k] += x[r * 4096 + j + k];
        float t = 0;
        for (float v : s) t += v;
        y[r] = t / 4096;
    }
}
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params*, const hiera_outputs* outputs, void*) {
    means(inputs->x, outputs->out);
    return 0;
}
