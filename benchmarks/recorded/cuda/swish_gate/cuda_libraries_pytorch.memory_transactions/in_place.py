# silu, then the product in place.
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        return nn.functional.silu(a).mul_(b)
