"""A linear layer over a few rows, in half precision."""
# precision: float16

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.fc = nn.Linear(features, out, bias=False)

    def forward(self, x):
        return self.fc(x)


def get_inputs():
    return [torch.randn(16, 4096)]


def get_init_inputs():
    return [4096, 4096]
