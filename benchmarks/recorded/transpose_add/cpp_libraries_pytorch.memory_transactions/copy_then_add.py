# A copy of y, then the addition in place.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return y.clone().add_(x.t())
