# The product of the transposes, transposed back.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.mm(b.t(), a.t()).t().contiguous()
