# The factor goes into the last addition: three operators in place of four.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, r):
        return torch.add(r, nn.functional.gelu(x + r, approximate="tanh"), alpha=0.5)
