"""Logarithm of the softmax over rows of 1000 classes."""
# precision: float16

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, dim=1)


def get_inputs():
    return [torch.randn(8192, 1000)]


def get_init_inputs():
    return []
