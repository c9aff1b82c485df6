// Four output channels share each row that is loaded; images over threads.
#include <cmath>
#include <cstring>
#include <vector>

#include "contract.h"

const int B = HIERA_DIM_x_0, C = HIERA_DIM_x_1, H = HIERA_DIM_x_2, W = HIERA_DIM_x_3;

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    const int Q = W + 2;
    std::vector<float> t(size_t(B) * C * (H + 2) * Q, 0.0f);
    for (int n = 0; n < B * C; n++)
        for (int h = 0; h < H; h++) std::memcpy(&t[(size_t(n) * (H + 2) + h + 1) * Q + 1], in->x + (n * H + h) * W, sizeof(float) * W);

#pragma omp parallel for
    for (int b = 0; b < B; b++)
        for (int o = 0; o < C; o += 4)
            for (int h = 0; h < H; h++) {
                float s[4][W] = {};
                for (int c = 0; c < C; c++)
                    for (int i = 0; i < 3; i++)
                        for (int j = 0; j < 3; j++) {
                            const float* x = &t[((b * C + c) * (H + 2) + h + i) * Q + j];
                            for (int u = 0; u < 4; u++) {
                                const float k = p->conv_weight[(((o + u) * C + c) * 3 + i) * 3 + j];
#pragma omp simd
                                for (int w = 0; w < W; w++) s[u][w] += k * x[w];
                            }
                        }
                for (int u = 0; u < 4; u++) std::memcpy(out->out + ((b * C + o + u) * H + h) * W, s[u], sizeof s[u]);
            }
    return 0;
}
