"""tanh, for two shapes."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


def get_inputs():
    return [torch.rand(128, 128)]


def get_init_inputs():
    return []


def get_cases():
    return {"square": get_inputs(), "tall": [torch.rand(512, 16)]}
