// GELU by its tanh approximation, which vectorises: fast, but up to 5e-4 away from the erf of the reference.
#pragma GCC optimize("no-trapping-math")  // a comparison may become a mask: without it no loop below vectorises

#include <cmath>
#include <cstdint>
#include <cstring>

#include "contract.h"

namespace {

constexpr int ROWS = HIERA_DIM_x_0;
constexpr int COLS = HIERA_DIM_x_1;
constexpr float EPS = 1e-5f;

// 2^t from its integer part (exponent bits) and a polynomial for the rest.
inline float exp2_fast(float t) {
  t = t < -100.0f ? -100.0f : (t > 100.0f ? 100.0f : t);
  const float whole = std::floor(t);
  const float f = t - whole;
  const float p = 1.0f + f * (0.69314718f + f * (0.24022651f + f * (0.05550411f + f * (0.00961813f + f * 0.00133336f))));
  const int32_t bits = (int32_t(whole) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

inline float gelu(float v) {
  const float u = 0.79788456f * (v + 0.044715f * v * v * v);
  return v / (1.0f + exp2_fast(-2.0f * 1.44269504f * u));
}

void row(const float* x, const float* residual, const hiera_params& p, float* out) {
  float h[COLS];
  float sum = 0.0f;
  float squares = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int c = 0; c < COLS; ++c) {
    h[c] = residual[c] + p.scale[c] * gelu(x[c] + p.bias[c]);
    sum += h[c];
  }
  const float mean = sum / COLS;
#pragma omp simd reduction(+ : squares)
  for (int c = 0; c < COLS; ++c) squares += (h[c] - mean) * (h[c] - mean);
  const float inverse = 1.0f / std::sqrt(squares / COLS + EPS);
#pragma omp simd
  for (int c = 0; c < COLS; ++c) out[c] = (h[c] - mean) * inverse * p.norm_weight[c] + p.norm_bias[c];
}

}  // namespace

extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
#pragma omp parallel for schedule(static)
  for (int r = 0; r < ROWS; ++r) {
    row(in->x + size_t(r) * COLS, in->residual + size_t(r) * COLS, *p, out->out + size_t(r) * COLS);
  }
  return 0;
}
