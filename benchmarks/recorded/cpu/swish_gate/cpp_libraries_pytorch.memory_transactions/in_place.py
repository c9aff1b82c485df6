# silu, then the product in place.
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        return F.silu(a).mul_(b)
