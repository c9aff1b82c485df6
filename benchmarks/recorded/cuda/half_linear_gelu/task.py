"""A linear layer with bias and exact GELU, in half precision."""
# precision: float16

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.fc = nn.Linear(features, out)

    def forward(self, x):
        return nn.functional.gelu(self.fc(x))


def get_inputs():
    return [torch.randn(2048, 1024)]


def get_init_inputs():
    return [1024, 2048]
