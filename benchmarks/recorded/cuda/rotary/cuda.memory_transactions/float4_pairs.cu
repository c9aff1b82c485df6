// Four neighbouring pairs a thread: every load and store is 16 bytes.
#include "contract.h"

const int B = HIERA_DIM_x_0, S = HIERA_DIM_x_1, H = HIERA_DIM_cos_1 / 4, THREADS = 256;

__global__ void rotate(const float4* __restrict__ x, const float4* __restrict__ cosines, const float4* __restrict__ sines, float4* __restrict__ y) {
    const int i = blockIdx.x * THREADS + threadIdx.x, left = i / H * 2 * H + i % H, right = left + H, angle = i % (S * H);
    const float4 a = x[left], b = x[right], c = cosines[angle], s = sines[angle];
    y[left] = make_float4(a.x * c.x - b.x * s.x, a.y * c.y - b.y * s.y, a.z * c.z - b.z * s.z, a.w * c.w - b.w * s.w);
    y[right] = make_float4(b.x * c.x + a.x * s.x, b.y * c.y + a.y * s.y, b.z * c.z + a.z * s.z, b.w * c.w + a.w * s.w);
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    rotate<<<B * S * H / THREADS, THREADS, 0, stream>>>((const float4*)in->x, (const float4*)in->cos, (const float4*)in->sin, (float4*)out->out);
    return cudaGetLastError();
}
