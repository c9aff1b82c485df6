# One mm on a transposed view of the weight, which copies nothing.
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.fc = nn.Linear(features, out, bias=False)

    def forward(self, x):
        return torch.mm(x, self.fc.weight.t())
