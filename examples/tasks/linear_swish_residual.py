"""A square linear layer, Swish, a per-feature scale and a residual: a matrix product whose epilogue can be fused."""

import torch
from torch import nn

ROWS, FEATURES = 1024, 768


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.scale = nn.Parameter(0.5 + torch.rand(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return x + self.scale * (y * torch.sigmoid(y))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs() -> list[int]:
    return [FEATURES]
