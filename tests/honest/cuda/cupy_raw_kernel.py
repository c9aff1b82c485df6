# A kernel that cupy compiles at load time, launched on torch's current stream.
# task: affine
import cupy
import torch
import torch.nn as nn

SOURCE = r"""
extern "C" __global__ void affine(const float* x, const float* w, const float* b, float* y, int features) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = fmaxf(x[i] * w[i % features] + b[i % features], 0.f);
}
"""
affine = cupy.RawKernel(SOURCE, "affine")


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        y = torch.empty_like(x)
        pointers = tuple(cupy.uint64(t.data_ptr()) for t in (x, self.weight, self.bias, y))
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            affine((x.numel() // 256,), (256,), (*pointers, cupy.int32(x.shape[1])))
        return y
