// Planted: 160 values are kept in registers through the loop, so that an SM holds few warps, and each of them has one
// narrow load on its way.
#include "contract.h"
#include <cuda_runtime.h>

constexpr int kCount = HIERA_DIM_x_0 * HIERA_DIM_x_1, kKept = 160, kThreads = 128, kBlocks = 1320;

__global__ void __launch_bounds__(kThreads) scale(const float* x, float* out) {
    const int thread = blockIdx.x * kThreads + threadIdx.x;
    float kept[kKept];
#pragma unroll
    for (int k = 0; k < kKept; ++k)
        asm volatile("ld.volatile.global.f32 %0, [%1];" : "=f"(kept[k]) : "l"(x + k * 32 + threadIdx.x % 32));
    float last = 0.f;
#pragma unroll 1
    for (int i = thread; i < kCount; i += kBlocks * kThreads) {
        last = x[i] * 1.5f + .5f;
        out[i] = last;
    }
#pragma unroll
    for (int k = 0; k < kKept; ++k) last = last * kept[k] + .25f;
    if (last == 1234.5678f) out[0] = last;  // as good as never, but the compiler does not know
}

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void*, cudaStream_t stream) {
    scale<<<kBlocks, kThreads, 0, stream>>>(in->x, out->out);
    return cudaGetLastError();
}
