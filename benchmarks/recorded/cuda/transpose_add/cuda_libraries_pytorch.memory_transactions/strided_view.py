# The transposed view is added as it is, without a copy; y comes first, so the result has its layout.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.add(y, x.t())
