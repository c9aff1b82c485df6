"""The GEMM stays with PyTorch (cuBLAS); bias, GELU, scale and residual become one kernel."""

import torch
from hiera_functions import function
from torch import nn

fused_epilogue = function("fused_epilogue", "tensor tensor tensor tensor tensor int64 int64 stream")


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.scale = nn.Parameter(torch.rand(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = torch.mm(x, self.linear.weight.t())
        out = torch.empty_like(x)
        fused_epilogue(product, self.linear.bias, self.scale, x, out, *x.shape)
        return out
