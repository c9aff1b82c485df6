"""A 3 x 3 convolution with padding and bias, then ReLU."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    return [torch.randn(32, 16, 64, 64)]


def get_init_inputs():
    return [16, 32]
