"""A matrix product in half precision, for which Tensor Cores are legal."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2048, 2048), torch.randn(2048, 2048)]


def get_init_inputs() -> list[object]:
    return []
