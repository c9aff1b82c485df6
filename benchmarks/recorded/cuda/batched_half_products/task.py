"""Products of small matrices, a batch of them, in half precision."""
# precision: float16

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b.transpose(1, 2))


def get_inputs():
    return [torch.randn(64, 256, 64), torch.randn(64, 256, 64)]


def get_init_inputs():
    return []
