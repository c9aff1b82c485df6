# The same operators in place on one buffer.
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return (x * 1.5).add_(0.5).relu_().mul_(y).sub_(x)
