// Each call starts tasks with std::async and waits for all of them.
// task: row_means
#include "contract.h"
#include <future>
static void means(const float* x, float* y, int from, int to) {
    for (int r = from; r < to; r++) {
        double sum = 0;
        for (int j = 0; j < 4096; j++) sum += x[r * 4096 + j];
        y[r] = (float)(sum / 4096);
    }
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    std::future<void> parts[4];
    for (int n = 0; n < 4; n++) parts[n] = std::async(std::launch::async, means, in->x, out->out, 16 * n, 16 * n + 16);
    for (auto& part : parts) part.get();
    return 0;
}
