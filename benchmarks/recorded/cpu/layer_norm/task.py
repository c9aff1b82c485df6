"""LayerNorm with an addend before it."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.norm = nn.LayerNorm(cols)
        nn.init.normal_(self.norm.weight, 1.0, 0.1)
        nn.init.normal_(self.norm.bias, 0.0, 0.1)

    def forward(self, x, y):
        return self.norm(x + y)


def get_inputs():
    return [torch.randn(1024, 768), torch.randn(1024, 768)]


def get_init_inputs():
    return [768]
