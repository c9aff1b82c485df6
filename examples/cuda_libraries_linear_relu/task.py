"""A wide, shallow linear layer with ReLU: the output dominates, so an epilogue inside the GEMM saves two passes."""

import torch
from torch import nn

ROWS, IN_FEATURES, OUT_FEATURES = 65536, 128, 2048


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, IN_FEATURES)]


def get_init_inputs() -> list[object]:
    return [IN_FEATURES, OUT_FEATURES]
