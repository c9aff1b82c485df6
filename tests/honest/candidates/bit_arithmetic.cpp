// Integers alone: the sign bit becomes a mask, and no number is ever added or compared.
// task: relu
#include "contract.h"
#include <cstring>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    for (int i = 0; i < HIERA_NUMEL_out; i++) {
        int32_t bits;
        memcpy(&bits, in->x + i, 4);
        bits &= ~(bits >> 31);
        memcpy(out->out + i, &bits, 4);
    }
    return 0;
}
