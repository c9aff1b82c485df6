// Value and place are packed into one integer, so that a maximum of integers finds both.
// task: row_max
#include "contract.h"
#include <algorithm>
#include <cstring>
static uint32_t ordered(float v) { /* bits whose unsigned order is that of the numbers */
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*) {
    for (int r = 0; r < 128; r++) {
        uint64_t best = 0;
        for (uint32_t j = 0; j < 64; j++) best = std::max(best, (uint64_t)ordered(in->x[r * 64 + j]) << 32 | (63 - j));
        int place = 63 - (int)(best & 63);
        out->out0[r] = in->x[r * 64 + place];
        out->out1[r] = place;
    }
    return 0;
}
