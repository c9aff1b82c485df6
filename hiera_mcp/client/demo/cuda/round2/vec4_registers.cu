// Four columns per load, the row in registers, sums by warp shuffles: no shared-memory traffic but one word per warp.
#include "contract.h"

namespace {

constexpr int ROWS = HIERA_DIM_x_0;
constexpr int COLS = HIERA_DIM_x_1;
constexpr int QUADS = COLS / 4;
constexpr int THREADS = 256;
constexpr int EACH = (QUADS + THREADS - 1) / THREADS;  // float4 per thread
constexpr float EPS = 1e-5f;
static_assert(QUADS * 4 == COLS, "rows must keep 16-byte alignment");

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

__device__ float4 chain(float4 x, float4 r, float4 b, float4 s) {
  return make_float4(r.x + s.x * gelu(x.x + b.x), r.y + s.y * gelu(x.y + b.y), r.z + s.z * gelu(x.z + b.z),
                     r.w + s.w * gelu(x.w + b.w));
}

__device__ float block_sum(float value, float* scratch) {
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(0xffffffffu, value, lane);
  __syncthreads();  // scratch may still be read from the sum before
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < THREADS / 32; ++warp) sum += scratch[warp];
  return sum;
}

__global__ void __launch_bounds__(THREADS) vec4_rows(hiera_inputs in, hiera_params p, hiera_outputs out) {
  __shared__ float scratch[THREADS / 32];
  const size_t start = size_t(blockIdx.x) * QUADS;
  const float4* x = reinterpret_cast<const float4*>(in.x) + start;
  const float4* residual = reinterpret_cast<const float4*>(in.residual) + start;
  const float4* bias = reinterpret_cast<const float4*>(p.bias);
  const float4* scale = reinterpret_cast<const float4*>(p.scale);
  float4 h[EACH];
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const int q = k * THREADS + threadIdx.x;
    if (q < QUADS) {
      h[k] = chain(__ldcs(x + q), __ldcs(residual + q), bias[q], scale[q]);
      sum += h[k].x + h[k].y + h[k].z + h[k].w;
    }
  }
  const float mean = block_sum(sum, scratch) / COLS;
  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    if (k * THREADS + threadIdx.x < QUADS) {
      h[k] = make_float4(h[k].x - mean, h[k].y - mean, h[k].z - mean, h[k].w - mean);
      squares += h[k].x * h[k].x + h[k].y * h[k].y + h[k].z * h[k].z + h[k].w * h[k].w;
    }
  }
  const float inverse = rsqrtf(block_sum(squares, scratch) / COLS + EPS);
  const float4* weight = reinterpret_cast<const float4*>(p.norm_weight);
  const float4* shift = reinterpret_cast<const float4*>(p.norm_bias);
  float4* y = reinterpret_cast<float4*>(out.out) + start;
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const int q = k * THREADS + threadIdx.x;
    if (q < QUADS) {
      const float4 w = weight[q];
      const float4 b = shift[q];
      __stcs(y + q, make_float4(h[k].x * inverse * w.x + b.x, h[k].y * inverse * w.y + b.y,
                                h[k].z * inverse * w.z + b.z, h[k].w * inverse * w.w + b.w));
    }
  }
}

}  // namespace

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*, cudaStream_t stream) {
  vec4_rows<<<ROWS, THREADS, 0, stream>>>(*in, *p, *out);
  return cudaGetLastError();
}
