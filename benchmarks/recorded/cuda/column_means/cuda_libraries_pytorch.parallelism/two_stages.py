# Two stages: 64 slices of rows are summed side by side, then their sums.
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        return x.view(64, rows // 64, columns).sum(dim=1).mean(dim=0).div_(rows // 64)
