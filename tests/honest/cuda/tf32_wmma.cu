// Tensor Cores on TF32 operands, which this contract allows.
// task: matmul
// tf32: allowed
#include "contract.h"
#include <mma.h>
using namespace nvcuda;
static const int N = 1024;
__global__ void product(const float* x, const float* w, float* y) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, row = warp / (N / 16) * 16, column = warp % (N / 16) * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> b;
    wmma::fill_fragment(sum, 0.f);
    for (int k = 0; k < N; k += 8) {
        wmma::load_matrix_sync(a, x + row * N + k, N);
        wmma::load_matrix_sync(b, w + column * N + k, N);
        for (int i = 0; i < a.num_elements; i++) a.x[i] = wmma::__float_to_tf32(a.x[i]);
        for (int i = 0; i < b.num_elements; i++) b.x[i] = wmma::__float_to_tf32(b.x[i]);
        wmma::mma_sync(sum, a, b, sum);
    }
    wmma::store_matrix_sync(y + row * N + column, sum, N, wmma::mem_row_major);
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
    product<<<N / 16 * N / 16 / 4, 128, 0, stream>>>(in->x, p->fc_weight, out->out);
    return cudaGetLastError();
}
