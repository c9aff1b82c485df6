"""A square matrix product with a weight."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.fc = nn.Linear(features, out, bias=False)

    def forward(self, x):
        return self.fc(x)


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return [1024, 1024]
