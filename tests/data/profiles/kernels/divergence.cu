// Planted: each lane branches to the piece that its element needs, so that a warp goes through all four of them.
#include "contract.h"
#include <cuda_runtime.h>

constexpr int kCount = HIERA_DIM_x_0 * HIERA_DIM_x_1, kThreads = 256, kSteps = 16;

template <int kPiece>
__device__ __noinline__ float piece(float v, float a, float b) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k) v = v * (a - b * v * v);
    return v;
}

__global__ void __launch_bounds__(kThreads) pieces(const float* x, float* out) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    const float v = x[i];
    float y;
    if (v < -.6f) y = piece<0>(v, 1.01f, .01f);
    else if (v < 0.f) y = piece<1>(v, 1.02f, .03f);
    else if (v < .6f) y = piece<2>(v, .99f, .02f);
    else y = piece<3>(v, .98f, .01f);
    out[i] = y;
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    pieces<<<kCount / kThreads, kThreads, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
