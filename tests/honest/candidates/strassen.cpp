// One level of Strassen's algorithm: seven products of half the size instead of eight, so another order of arithmetic.
// task: linear
#include "contract.h"
#include <vector>
using Matrix = std::vector<float>;
static const int R = 48, K = 96, C = 40;
static Matrix left(const float* x, int i, int j, float s, int k, int l) {
    Matrix m(R * K);
    for (int r = 0; r < R; r++)
        for (int c = 0; c < K; c++) m[r * K + c] = x[(i * R + r) * 192 + j * K + c] + (s ? s * x[(k * R + r) * 192 + l * K + c] : 0);
    return m;
}
static Matrix right(const float* w, int i, int j, float s, int k, int l) { /* of weight.T, whose block i, j is block j, i of weight */
    Matrix m(K * C);
    for (int r = 0; r < K; r++)
        for (int c = 0; c < C; c++) m[r * C + c] = w[(j * C + c) * 192 + i * K + r] + (s ? s * w[(l * C + c) * 192 + k * K + r] : 0);
    return m;
}
static Matrix product(const Matrix& a, const Matrix& b) {
    Matrix m(R * C);
    for (int r = 0; r < R; r++)
        for (int k = 0; k < K; k++)
            for (int c = 0; c < C; c++) m[r * C + c] += a[r * K + k] * b[k * C + c];
    return m;
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    const float *x = in->x, *w = p->fc_weight;
    Matrix m1 = product(left(x, 0, 0, 1, 1, 1), right(w, 0, 0, 1, 1, 1)), m2 = product(left(x, 1, 0, 1, 1, 1), right(w, 0, 0, 0, 0, 0)),
           m3 = product(left(x, 0, 0, 0, 0, 0), right(w, 0, 1, -1, 1, 1)), m4 = product(left(x, 1, 1, 0, 0, 0), right(w, 1, 0, -1, 0, 0)),
           m5 = product(left(x, 0, 0, 1, 0, 1), right(w, 1, 1, 0, 0, 0)), m6 = product(left(x, 1, 0, -1, 0, 0), right(w, 0, 0, 1, 0, 1)),
           m7 = product(left(x, 0, 1, -1, 1, 1), right(w, 1, 0, 1, 1, 1));
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) {
            int n = r * C + c;
            out->out[r * 80 + c] = m1[n] + m4[n] - m5[n] + m7[n];
            out->out[r * 80 + C + c] = m3[n] + m5[n];
            out->out[(R + r) * 80 + c] = m2[n] + m4[n];
            out->out[(R + r) * 80 + C + c] = m1[n] - m2[n] + m3[n] + m6[n];
        }
    return 0;
}
