# mse_loss: difference and square in one kernel, so one intermediate less in memory.
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return nn.functional.mse_loss(a, b)
