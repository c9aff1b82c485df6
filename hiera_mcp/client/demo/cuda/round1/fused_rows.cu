// The whole chain in one kernel, one block per row: the row waits in shared memory, nothing returns but the result.
#include "contract.h"

namespace {

constexpr int ROWS = HIERA_DIM_x_0;
constexpr int COLS = HIERA_DIM_x_1;
constexpr int THREADS = 256;
constexpr float EPS = 1e-5f;

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

__device__ float block_sum(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  const float sum = scratch[0];
  __syncthreads();
  return sum;
}

__global__ void fused_rows(hiera_inputs in, hiera_params p, hiera_outputs out) {
  __shared__ float h[COLS];
  __shared__ float scratch[THREADS];
  const size_t start = size_t(blockIdx.x) * COLS;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < COLS; c += THREADS) {
    h[c] = in.residual[start + c] + p.scale[c] * gelu(in.x[start + c] + p.bias[c]);
    sum += h[c];
  }
  const float mean = block_sum(sum, scratch) / COLS;
  float squares = 0.0f;
  for (int c = threadIdx.x; c < COLS; c += THREADS) squares += (h[c] - mean) * (h[c] - mean);
  const float inverse = rsqrtf(block_sum(squares, scratch) / COLS + EPS);
  for (int c = threadIdx.x; c < COLS; c += THREADS) {
    out.out[start + c] = (h[c] - mean) * inverse * p.norm_weight[c] + p.norm_bias[c];
  }
}

}  // namespace

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
  fused_rows<<<ROWS, THREADS, 0, stream>>>(*in, *p, *out);
  return cudaGetLastError();
}
