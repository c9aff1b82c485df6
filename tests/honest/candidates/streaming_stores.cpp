// Results go past the caches, by non-temporal stores with a fence behind them.
// task: affine
#include "contract.h"
#include <immintrin.h>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int i = 0; i < HIERA_NUMEL_out; i += 4) {
        __m128 v = _mm_add_ps(_mm_mul_ps(_mm_load_ps(in->x + i), _mm_load_ps(p->weight + i % 256)), _mm_load_ps(p->bias + i % 256));
        _mm_stream_ps(out->out + i, _mm_max_ps(v, _mm_setzero_ps()));
    }
    _mm_sfence();
    return 0;
}
