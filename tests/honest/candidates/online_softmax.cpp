// Maximum and sum in one pass that rescales, over blocks that OpenMP tasks hand out.
// task: softmax
#include "contract.h"
#include <cmath>
struct Part { float top, sum; };
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    const int n = HIERA_DIM_x_1, parts = 16, size = n / parts;
    for (int r = 0; r < HIERA_DIM_x_0; r++) {
        const float* x = in->x + r * n;
        Part part[parts];
#pragma omp parallel
#pragma omp single
        for (int k = 0; k < parts; k++)
#pragma omp task firstprivate(k)
        {
            Part own = {x[k * size], 0};
            for (int j = k * size; j < (k + 1) * size; j++) {
                if (x[j] > own.top) own = {x[j], own.sum * std::exp(own.top - x[j])};
                own.sum += std::exp(x[j] - own.top);
            }
            part[k] = own;
        }
        Part all = part[0];
        for (int k = 1; k < parts; k++) {
            float top = std::fmax(all.top, part[k].top);
            all = {top, all.sum * std::exp(all.top - top) + part[k].sum * std::exp(part[k].top - top)};
        }
        for (int j = 0; j < n; j++) out->out[r * n + j] = std::exp(x[j] - all.top) / all.sum;
    }
    return 0;
}
