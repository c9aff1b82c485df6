// Each call starts two threads of its own and joins them; they take rows from a shared counter.
// task: affine
#include "contract.h"
#include <atomic>
#include <cmath>
#include <thread>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    std::atomic<int> next{0};
    auto work = [&] {
        for (int r; (r = next++) < 512;)
            for (int c = 0; c < 256; c++) out->out[r * 256 + c] = std::fmax(in->x[r * 256 + c] * p->weight[c] + p->bias[c], 0.f);
    };
    std::thread first(work), second(work);
    first.join();
    second.join();
    return 0;
}
