"""GroupNorm over images, then SiLU."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight, 1.0, 0.1)
        nn.init.normal_(self.norm.bias, 0.0, 0.1)

    def forward(self, x):
        return F.silu(self.norm(x))


def get_inputs():
    return [torch.randn(32, 128, 32, 32)]


def get_init_inputs():
    return [32, 128]
