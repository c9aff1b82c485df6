// Warpgroup products (wgmma) on operands in shared memory, in a float16 contract.
// task: matmul
// precision: float16
// needs: 9.0
#include "contract.h"
static const int N = 1024, T = 64, K = 16;
/* Core matrices of 8 rows by 16 bytes lie one after another: the two along K 128 bytes apart, those along the rows 256. */
__device__ int place(int row, int k) { return (row / 8 * 2 + k / 8) * 64 + row % 8 * 8 + k % 8; }
__device__ unsigned long long descriptor(const __half* tile) {
    unsigned long long address = __cvta_generic_to_shared(tile);
    return (address & 0x3FFFF) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
}
__global__ void product(const __half* x, const __half* w, __half* y) {
    __shared__ alignas(128) __half a[T * K], b[T * K];
    const int row = blockIdx.y * T, column = blockIdx.x * T;
    float d[32] = {};
    for (int k0 = 0; k0 < N; k0 += K) {
        for (int i = threadIdx.x; i < T * K; i += 128) {
            a[place(i / K, i % K)] = x[(row + i / K) * N + k0 + i % K];
            b[place(i / K, i % K)] = w[(column + i / K) * N + k0 + i % K];
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
            "%24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 0;"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), 
              "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), 
              "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), 
              "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
            : "l"(descriptor(a)), "l"(descriptor(b)));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    const int r = row + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, c = column + threadIdx.x % 4 * 2;
    for (int i = 0; i < 32; i++) y[(r + i % 4 / 2 * 8) * N + c + i / 4 * 8 + i % 2] = __float2half(d[i]);
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<dim3(N / T, N / T), 128, 0, stream>>>(in->x, p->fc_weight, out->out);
    return cudaGetLastError();
}
