"""relu of two sets of shapes, of which the first one is timed."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(512, 256)]


def get_cases():
    return {"usual": get_inputs(), "odd": [torch.rand(63, 129)]}


def get_init_inputs():
    return []
