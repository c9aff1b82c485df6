"""Rows divided by their Euclidean norm."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x / (x.norm(dim=1, keepdim=True) + 1e-6)


def get_inputs():
    return [torch.randn(8192, 2048)]


def get_init_inputs():
    return []
