"""Sums of the columns of a matrix of integers, so that the order of the additions does not matter."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(dim=0, dtype=torch.int32)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 100, (65536, 64), dtype=torch.int32)]


def get_init_inputs() -> list[object]:
    return []
