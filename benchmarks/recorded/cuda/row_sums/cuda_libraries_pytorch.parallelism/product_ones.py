# A matrix-vector product with ones: the library's own split of rows over threads.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.mv(x, x.new_ones(x.shape[1]))
