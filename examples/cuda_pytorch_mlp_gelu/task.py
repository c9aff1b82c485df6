"""A large linear layer, exact GELU, a learned scale and a residual: a GEMM for the library, the rest for one kernel."""

import torch
from torch import nn

ROWS, FEATURES = 16384, 2048


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.scale = nn.Parameter(torch.rand(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.scale * nn.functional.gelu(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs() -> list[object]:
    return [FEATURES]
