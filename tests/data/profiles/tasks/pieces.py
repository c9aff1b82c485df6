"""A function in four pieces, each of them a map that is iterated: neighbours need different pieces."""

import torch
from torch import nn

STEPS = 16


def piece(x: torch.Tensor, a: float, b: float) -> torch.Tensor:
    for _ in range(STEPS):
        x = x * (a - b * x * x)
    return x


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low = torch.where(x < -0.6, piece(x, 1.01, 0.01), piece(x, 1.02, 0.03))
        high = torch.where(x < 0.6, piece(x, 0.99, 0.02), piece(x, 0.98, 0.01))
        return torch.where(x < 0, low, high)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2048, 2048)]


def get_init_inputs() -> list[object]:
    return []
