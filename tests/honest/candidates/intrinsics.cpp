// Vector intrinsics of the processor, where it has them.
// task: linear
#include "contract.h"
#include <immintrin.h>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    for (int r = 0; r < 96; r++)
        for (int o = 0; o < 80; o++) {
            const float *x = in->x + r * 192, *w = p->fc_weight + o * 192;
#ifdef __AVX__
            __m256 sum = _mm256_setzero_ps();
            for (int k = 0; k < 192; k += 8) sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_loadu_ps(x + k), _mm256_loadu_ps(w + k)));
            __m128 half = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
#else
            __m128 half = _mm_setzero_ps();
            for (int k = 0; k < 192; k += 4) half = _mm_add_ps(half, _mm_mul_ps(_mm_loadu_ps(x + k), _mm_loadu_ps(w + k)));
#endif
            half = _mm_add_ps(half, _mm_movehl_ps(half, half));
            out->out[r * 80 + o] = _mm_cvtss_f32(_mm_add_ss(half, _mm_shuffle_ps(half, half, 1)));
        }
    return 0;
}
