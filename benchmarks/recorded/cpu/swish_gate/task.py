"""A gate: one half times the swish of the other."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        return F.silu(a) * b


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return []
