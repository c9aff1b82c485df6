"""A transposed matrix plus another."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return x.t() + y


def get_inputs():
    return [torch.randn(1024, 1024), torch.randn(1024, 1024)]


def get_init_inputs():
    return []
