# One batched matmul on a transposed view, the whole batch in one launch.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b.mT)
