// Tensor Cores on half operands with float accumulators, in a float16 contract.
// task: matmul
// precision: float16
#include "contract.h"
#include <mma.h>
using namespace nvcuda;
static const int N = 1024;
__global__ void product(const __half* x, const __half* w, __half* y) {
    __shared__ alignas(128) float tile[4][16][16];
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, row = warp / (N / 16) * 16, column = warp % (N / 16) * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
    wmma::fill_fragment(sum, 0.f);
    for (int k = 0; k < N; k += 16) {
        wmma::load_matrix_sync(a, x + row * N + k, N);
        wmma::load_matrix_sync(b, w + column * N + k, N);
        wmma::mma_sync(sum, a, b, sum);
    }
    float* own = &tile[threadIdx.x / 32][0][0];
    wmma::store_matrix_sync(own, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x % 32; i < 256; i += 32) y[(row + i / 16) * N + column + i % 16] = __float2half(own[i]);
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<N / 16 * N / 16 / 4, 128, 0, stream>>>(in->x, p->fc_weight, out->out);
    return cudaGetLastError();
}
