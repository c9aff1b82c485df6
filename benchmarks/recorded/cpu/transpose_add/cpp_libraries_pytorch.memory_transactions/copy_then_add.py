# A copy of y, then the addition in place.
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return y.clone().add_(x.t())
