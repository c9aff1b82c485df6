# Variance and mean in one operator, the rest in place with addcmul.
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=1, correction=0, keepdim=True)
        y = (x - mean).mul_(variance.add_(self.norm.eps).rsqrt_())
        return torch.addcmul(self.norm.bias, y, self.norm.weight)
