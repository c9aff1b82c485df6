# Multiply and add as one operator, the residual as a scaled addition in place.
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        v = torch.addcmul(self.bias, x, self.scale).clamp_(-3, 3)
        return nn.functional.gelu(v).add_(x, alpha=0.1)
