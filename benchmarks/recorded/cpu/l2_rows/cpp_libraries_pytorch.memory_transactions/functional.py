# The functional form with a reciprocal square root.
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * (x * x).sum(dim=1, keepdim=True).rsqrt_()
