# PyTorch operators, in place after the first.
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = x - x.amax(dim=1, keepdim=True)
        y.exp_()
        return y.div_(y.sum(dim=1, keepdim=True))
