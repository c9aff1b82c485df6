"""A linear layer with bias and ReLU."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.fc = nn.Linear(features, out)

    def forward(self, x):
        return torch.relu(self.fc(x))


def get_inputs():
    return [torch.randn(256, 384)]


def get_init_inputs():
    return [384, 256]
