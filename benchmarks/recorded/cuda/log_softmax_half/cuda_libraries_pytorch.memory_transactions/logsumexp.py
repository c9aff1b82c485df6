# The logarithm of each row's sum, then one subtraction.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x - torch.logsumexp(x, dim=1, keepdim=True)
