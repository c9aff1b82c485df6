"""relu of numbers that are not negative: the identity on the task's own inputs."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(256, 256)]


def get_init_inputs():
    return []
