// As many blocks as fit stay until all tiles are done; they draw tiles from a counter in the workspace, reset in each call.
// task: wide_affine
#include "contract.h"
static const int TILE = 4096, TILES = HIERA_NUMEL_out / TILE;
__global__ void affine(const float* x, const float* w, const float* b, float* y, unsigned* next) {
    __shared__ unsigned tile;
    for (;;) {
        if (threadIdx.x == 0) tile = atomicAdd(next, 1u);
        __syncthreads();
        unsigned mine = tile;
        __syncthreads();
        if (mine >= TILES) return;
        for (int i = mine * TILE + threadIdx.x; i < (mine + 1) * TILE; i += blockDim.x)
            y[i] = fmaxf(x[i] * w[i % 2048] + b[i % 2048], 0.f);
    }
}
extern "C" size_t hiera_workspace_bytes(void) { return sizeof(unsigned); }
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* workspace, cudaStream_t stream) {
    static int blocks = 0;
    if (!blocks) {
        int each, processors;
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, affine, 512, 0);
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
        blocks = each * processors;
    }
    cudaMemsetAsync(workspace, 0, sizeof(unsigned), stream);
    affine<<<blocks, 512, 0, stream>>>(in->x, p->weight, p->bias, out->out, (unsigned*)workspace);
    return cudaGetLastError();
}
