"""The tail of a transformer block's first half: bias, exact GELU, layer scale, residual, LayerNorm."""

import torch
import torch.nn.functional as F
from torch import nn

ROWS = 2048
COLS = 1000


class Model(nn.Module):
    """LayerNorm(residual + scale * GELU(x + bias)), row by row."""

    def __init__(self, cols: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(0.1 * torch.randn(cols))
        self.scale = nn.Parameter(1.0 + 0.1 * torch.randn(cols))
        self.norm = nn.LayerNorm(cols)
        nn.init.normal_(self.norm.weight, 1.0, 0.1)
        nn.init.normal_(self.norm.bias, 0.0, 0.1)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return self.norm(residual + self.scale * F.gelu(x + self.bias))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[int]:
    return [COLS]
