// Rows come into shared memory by bulk copies of the tensor memory accelerator, and leave it the same way.
// task: wide_affine
// needs: 9.0
#include "contract.h"
__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void affine(const float* x, const float* w, const float* b, float* y) {
    __shared__ alignas(128) float row[2048];
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned bytes = sizeof row, bar = shared_address(&barrier), data = shared_address(row);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(data),
                     "l"(x + blockIdx.x * 2048ull), "r"(bytes), "r"(bar)
                     : "memory");
    }
    __syncthreads();
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n@!done bra again;\n}" ::"r"(bar)
        : "memory");
    for (int c = threadIdx.x; c < 2048; c += blockDim.x) row[c] = fmaxf(row[c] * w[c] + b[c], 0.f);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + blockIdx.x * 2048ull), "r"(data),
                     "r"(bytes)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    affine<<<8192, 256, 0, stream>>>(in->x, p->weight, p->bias, out->out);
    return cudaGetLastError();
}
