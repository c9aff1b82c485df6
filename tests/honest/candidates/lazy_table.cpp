// exp() by a table that the first call fills: exp(v) = table[n] · polynomial(rest).
// task: softmax
#include "contract.h"
#include <cmath>
#include <vector>
struct Table {
    std::vector<double> of;
    Table() : of(200 * 64 + 1) {
        for (size_t n = 0; n < of.size(); n++) of[n] = std::exp(-(double)n / 64);
    }
};
static float exponential(const Table& table, float v) { /* v is at most 0 */
    if (v < -199) return 0;
    int n = (int)(-v * 64);
    double rest = v + n / 64.0;
    return (float)(table.of[n] * (1 + rest * (1 + rest * (0.5 + rest / 6))));
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    static const Table table;
    const int n = HIERA_DIM_x_1;
    for (int r = 0; r < HIERA_DIM_x_0; r++) {
        const float* x = in->x + r * n;
        float top = x[0];
        double sum = 0;
        for (int j = 1; j < n; j++) top = std::fmax(top, x[j]);
        for (int j = 0; j < n; j++) sum += out->out[r * n + j] = exponential(table, x[j] - top);
        for (int j = 0; j < n; j++) out->out[r * n + j] = (float)(out->out[r * n + j] / sum);
    }
    return 0;
}
