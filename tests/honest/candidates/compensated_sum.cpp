// Kahan's compensated sums, backwards, with an exception thrown and caught on the way.
// task: row_means
#include "contract.h"
#include <stdexcept>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    for (int r = 0; r < 64; r++) {
        float sum = 0, lost = 0;
        for (int j = 4095; j >= 0; j--) {
            float v = in->x[r * 4096 + j] - lost, next = sum + v;
            lost = (next - sum) - v;
            sum = next;
        }
        try {
            if (r % 2) throw std::range_error("odd");
            out->out[r] = sum / 4096;
        } catch (const std::range_error&) {
            out->out[r] = sum * (1.0f / 4096);
        }
    }
    return 0;
}
