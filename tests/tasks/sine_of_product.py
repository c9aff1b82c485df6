"""sin(x @ w): arguments of some tens, so that their last bits decide."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, w):
        return torch.sin(x @ w)


def get_inputs():
    return [torch.randn(128, 1024), torch.randn(1024, 128)]


def get_init_inputs():
    return []
