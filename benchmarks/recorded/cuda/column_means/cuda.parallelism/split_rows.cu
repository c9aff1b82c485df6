// The rows are split over 128 slices of blocks; a second kernel adds the slices from the workspace.
#include "contract.h"

const int ROWS = HIERA_DIM_x_0, COLS = HIERA_DIM_x_1, THREADS = 256, SLICES = 128, WIDTH = 32, LANES = 8;

__global__ void slices(const float* x, float* part) {
    const int c = blockIdx.x * THREADS + threadIdx.x, first = blockIdx.y * (ROWS / SLICES);
    float s = 0;
    for (int r = first; r < first + ROWS / SLICES; r++) s += x[size_t(r) * COLS + c];
    part[blockIdx.y * COLS + c] = s;
}

__global__ void means(const float* part, float* y) {
    __shared__ float lanes[LANES][WIDTH];
    const int c = blockIdx.x * WIDTH + threadIdx.x;
    float s = 0;
    for (int i = threadIdx.y; i < SLICES; i += LANES) s += part[i * COLS + c];
    lanes[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.y == 0) {
        for (int i = 1; i < LANES; i++) s += lanes[i][threadIdx.x];
        y[c] = s / ROWS;
    }
}

extern "C" size_t hiera_workspace_bytes(void) { return sizeof(float) * SLICES * COLS; }
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    float* part = static_cast<float*>(workspace);
    slices<<<dim3(COLS / THREADS, SLICES), THREADS, 0, stream>>>(in->x, part);
    means<<<COLS / WIDTH, dim3(WIDTH, LANES), 0, stream>>>(part, out->out);
    return cudaGetLastError();
}
