// Winograd's F(2 × 2, 3 × 3): another order of arithmetic with fewer products; filters are transformed in hiera_prepare.
// task: conv3x3
#include "contract.h"
static const int C = 16, D = 32;
__global__ void transform_filters(const float* g, float* u) {
    const float* f = g + threadIdx.x * 9;
    float half[4][3];
    for (int c = 0; c < 3; c++) {
        half[0][c] = f[c];
        half[1][c] = (f[c] + f[3 + c] + f[6 + c]) / 2;
        half[2][c] = (f[c] - f[3 + c] + f[6 + c]) / 2;
        half[3][c] = f[6 + c];
    }
    for (int r = 0; r < 4; r++) {
        float* to = u + threadIdx.x * 16 + r * 4;
        to[0] = half[r][0];
        to[1] = (half[r][0] + half[r][1] + half[r][2]) / 2;
        to[2] = (half[r][0] - half[r][1] + half[r][2]) / 2;
        to[3] = half[r][2];
    }
}
__global__ void convolve(const float* x, const float* u, float* y) {
    const int n = blockIdx.x / C, o = blockIdx.x % C, i = threadIdx.x / 16 * 2, j = threadIdx.x % 16 * 2;
    float m[4][4] = {};
    for (int c = 0; c < C; c++) {
        float d[4][4], t[4][4];
        for (int r = 0; r < 4; r++)
            for (int s = 0; s < 4; s++) {
                int h = i - 1 + r, w = j - 1 + s;
                d[r][s] = h >= 0 && h < D && w >= 0 && w < D ? x[((n * C + c) * D + h) * D + w] : 0.f;
            }
        for (int s = 0; s < 4; s++) {
            t[0][s] = d[0][s] - d[2][s];
            t[1][s] = d[1][s] + d[2][s];
            t[2][s] = d[2][s] - d[1][s];
            t[3][s] = d[1][s] - d[3][s];
        }
        const float* f = u + (o * C + c) * 16;
        for (int r = 0; r < 4; r++) {
            m[r][0] += f[r * 4] * (t[r][0] - t[r][2]);
            m[r][1] += f[r * 4 + 1] * (t[r][1] + t[r][2]);
            m[r][2] += f[r * 4 + 2] * (t[r][2] - t[r][1]);
            m[r][3] += f[r * 4 + 3] * (t[r][1] - t[r][3]);
        }
    }
    for (int r = 0; r < 2; r++) {
        float v[4];
        for (int s = 0; s < 4; s++) v[s] = r ? m[1][s] - m[2][s] - m[3][s] : m[0][s] + m[1][s] + m[2][s];
        float* to = y + ((n * C + o) * D + i + r) * D + j;
        to[0] = v[0] + v[1] + v[2];
        to[1] = v[1] - v[2] - v[3];
    }
}
extern "C" size_t hiera_workspace_bytes(void) { return sizeof(float) * C * C * 16; }
extern "C" int hiera_prepare(const hiera_params* p, void* workspace, cudaStream_t stream) {
    transform_filters<<<1, C * C, 0, stream>>>(p->conv_weight, (float*)workspace);
    return cudaGetLastError();
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    convolve<<<8 * C, 256, 0, stream>>>(in->x, (const float*)workspace, out->out);
    return cudaGetLastError();
}
