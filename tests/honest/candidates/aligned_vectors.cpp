// Pointers are taken to be aligned to 64 bytes, as contract.h promises, and vectors go through them.
// task: affine
#include "contract.h"
typedef float v16 __attribute__((vector_size(64)));
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params* params, const hiera_outputs* outputs, void* workspace) {
    (void)workspace;
    const v16* x = (const v16*)__builtin_assume_aligned(inputs->x, 64);
    const v16* w = (const v16*)__builtin_assume_aligned(params->weight, 64);
    const v16* b = (const v16*)__builtin_assume_aligned(params->bias, 64);
    v16* y = (v16*)__builtin_assume_aligned(outputs->out, 64);
    for (int i = 0; i < 512 * 16; i++) {
        v16 v = x[i] * w[i % 16] + b[i % 16];
        y[i] = v > 0 ? v : v16{};
    }
    return 0;
}
