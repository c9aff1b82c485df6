"""Prefix sums along rows with a boolean mask and a decay: a scan, with an input that is not floating point."""

import torch
from torch import nn

ROWS, LENGTH = 1024, 4096


class Model(nn.Module):
    def __init__(self, decay: float) -> None:
        super().__init__()
        self.decay = decay

    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return self.decay * torch.cumsum(x * keep, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, LENGTH), torch.rand(ROWS, LENGTH) < 0.75]


def get_init_inputs() -> list[float]:
    return [0.125]
