// Partial sums of threads are added in whatever order they end: not deterministic, and right.
// task: row_means
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params*, const hiera_outputs* outputs, void*) {
    for (int r = 0; r < 64; r++) {
        float total = 0;
#pragma omp parallel
        {
            float own = 0;
#pragma omp for schedule(dynamic, 64) nowait
            for (int j = 0; j < 4096; j++) own += inputs->x[r * 4096 + j];
#pragma omp atomic
            total += own;
        }
        outputs->out[r] = total / 4096;
    }
    return 0;
}
