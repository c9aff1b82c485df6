# Multiply and add as one operator, tanh and the bound in place.
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(channels) + 0.5)
        self.shift = nn.Parameter(torch.randn(channels) * 0.5)

    def forward(self, x):
        return torch.addcmul(self.shift.view(1, -1, 1, 1), x, self.scale.view(1, -1, 1, 1)).tanh_().clamp_(min=-0.5)
