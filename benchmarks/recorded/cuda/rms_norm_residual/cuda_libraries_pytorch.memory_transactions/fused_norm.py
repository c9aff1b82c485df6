# The sum, then PyTorch's own RMS normalisation in one operator.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))

    def forward(self, x, r):
        return F.rms_norm(x + r, self.weight.shape, self.weight, 1e-6)
