// Denormal numbers are flushed to zero while the call runs; the mode is as it was afterwards.
// task: affine
#include "contract.h"
#include <cmath>
#include <immintrin.h>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040);
    for (int i = 0; i < HIERA_NUMEL_out; i++) out->out[i] = std::fmax(in->x[i] * p->weight[i % 256] + p->bias[i % 256], 0.f);
    _mm_setcsr(mode);
    return 0;
}
