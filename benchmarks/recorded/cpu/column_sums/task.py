"""Sums along the first dimension."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=0)


def get_inputs():
    return [torch.randn(2048, 1024)]


def get_init_inputs():
    return []
