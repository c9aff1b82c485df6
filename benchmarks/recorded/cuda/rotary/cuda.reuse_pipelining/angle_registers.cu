// Each thread keeps cosine and sine of its place in registers over eight samples; the next pair is loaded ahead.
#include "contract.h"

const int B = HIERA_DIM_x_0, S = HIERA_DIM_x_1, H = HIERA_DIM_cos_1, THREADS = 256, SAMPLES = 8;

__global__ void rotate(const float* __restrict__ x, const float* __restrict__ cosines, const float* __restrict__ sines, float* __restrict__ y) {
    const int angle = blockIdx.x * THREADS + threadIdx.x, sample = S * 2 * H;
    const float c = cosines[angle], s = sines[angle];
    int i = blockIdx.y * SAMPLES * sample + angle / H * 2 * H + angle % H;
    float a = x[i], b = x[i + H];
#pragma unroll
    for (int k = 0; k < SAMPLES; k++, i += sample) {
        const float a_now = a, b_now = b;
        if (k + 1 < SAMPLES) a = x[i + sample], b = x[i + sample + H];
        y[i] = a_now * c - b_now * s;
        y[i + H] = b_now * c + a_now * s;
    }
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    rotate<<<dim3(S * H / THREADS, B / SAMPLES), THREADS, 0, stream>>>(in->x, in->cos, in->sin, out->out);
    return cudaGetLastError();
}
