"""A transposed copy of a matrix of 64 MiB: either its loads or its stores are strided, unless a tile turns them."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.t().contiguous()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4096, 4096)]


def get_init_inputs() -> list[object]:
    return []
