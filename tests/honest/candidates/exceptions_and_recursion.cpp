// Sums by recursion in long double, and an exception that is thrown and caught in each call.
// task: row_means
#include "contract.h"
#include <stdexcept>
#include <vector>
static long double sum(const float* x, int n) {
    if (n == 1) return *x;
    return sum(x, n / 2) + sum(x + n / 2, n - n / 2);
}
static void row(std::vector<float>& y, int r, const float* x) { y.at(r) = (float)(sum(x + r * 4096, 4096) / 4096); }
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params*, const hiera_outputs* outputs, void*) {
    std::vector<float> y(64);
    try {
        for (int r = 0;; r++) row(y, r, inputs->x);
    } catch (const std::out_of_range&) {
    }
    for (int r = 0; r < 64; r++) outputs->out[r] = y[r];
    return 0;
}
