"""Mean of squares of each row."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return (x * x).mean(dim=1)


def get_inputs():
    return [torch.randn(1024, 2048)]


def get_init_inputs():
    return []
