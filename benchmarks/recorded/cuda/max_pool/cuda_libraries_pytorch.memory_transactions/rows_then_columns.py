# Maxima of strided views, rows and then columns, folded in place: no index tensor is written.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        rows = torch.maximum(x[:, :, 0::2], x[:, :, 1::2])
        torch.maximum(rows[:, :, 1:], x[:, :, 1:-1:2], out=rows[:, :, 1:])
        y = torch.maximum(rows[..., 0::2], rows[..., 1::2])
        torch.maximum(y[..., 1:], rows[..., 1:-1:2], out=y[..., 1:])
        return y
