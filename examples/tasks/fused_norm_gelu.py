"""RMSNorm over rows, then a GELU gate: four memory-bound operators and a reduction that one pass over the rows can do."""

import torch
from torch import nn

ROWS, COLUMNS = 4096, 1024


class Model(nn.Module):
    """gate * gelu(weight * x / rms(x) + bias), row by row."""

    def __init__(self, columns: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(columns))
        self.bias = nn.Parameter(0.1 * torch.randn(columns))
        self.eps = eps

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps)
        return gate * nn.functional.gelu(self.weight * (x * scale) + self.bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return [COLUMNS, 1e-6]
