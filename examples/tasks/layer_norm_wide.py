"""LayerNorm over few, very long rows: a reduction that has to be spread over many blocks of threads."""

import torch
from torch import nn

ROWS, CHANNELS, HEIGHT, WIDTH = 8, 32, 128, 128


class Model(nn.Module):
    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape)
        nn.init.normal_(self.norm.weight, 1.0, 0.1)
        nn.init.normal_(self.norm.bias, 0.0, 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return [(CHANNELS, HEIGHT, WIDTH)]
