"""The outer product of two vectors: an output of 4 GiB from inputs of 256 KB."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return a[:, None] * b[None, :]


def get_inputs():
    return [torch.rand(32768), torch.rand(32768)]


def get_init_inputs():
    return []
