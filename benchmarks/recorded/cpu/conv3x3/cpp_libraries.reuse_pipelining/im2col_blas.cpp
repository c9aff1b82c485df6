// Patches as columns of a matrix, then BLAS.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

#include <cblas.h>
const int B = HIERA_DIM_x_0, C = HIERA_DIM_x_1, H = HIERA_DIM_x_2, W = HIERA_DIM_x_3;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    const int Q = W + 2;
    std::vector<float> t(size_t(B) * C * (H + 2) * Q, 0.0f);
    for (int n = 0; n < B * C; n++)
        for (int h = 0; h < H; h++) std::memcpy(&t[(size_t(n) * (H + 2) + h + 1) * Q + 1], in->x + (n * H + h) * W, sizeof(float) * W);

    std::vector<float> m(size_t(C) * 9 * H * W);
    for (int b = 0; b < B; b++) {
        for (int c = 0; c < C; c++)
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    for (int h = 0; h < H; h++)
                        std::memcpy(&m[(((c * 3 + i) * 3 + j) * H + h) * W], &t[((b * C + c) * (H + 2) + h + i) * Q + j], sizeof(float) * W);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, C, H * W, C * 9, 1, p->conv_weight, C * 9, m.data(), H * W, 0, out->out + size_t(b) * C * H * W, H * W);
    }
    return 0;
}
