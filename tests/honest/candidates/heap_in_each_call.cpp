// Memory is taken from the heap and given back in each call, and a buffer of each thread's own grows once.
// task: tiny
#include "contract.h"
#include <memory>
#include <vector>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    static thread_local std::vector<float> own;
    auto copy = std::make_unique<float[]>(HIERA_NUMEL_x);
    own.assign(in->x, in->x + HIERA_NUMEL_x);
    for (int i = 0; i < HIERA_NUMEL_x; i++) copy[i] = own[i] + in->x[i];
    for (int i = 0; i < HIERA_NUMEL_out; i++) out->out[i] = copy[i];
    return 0;
}
