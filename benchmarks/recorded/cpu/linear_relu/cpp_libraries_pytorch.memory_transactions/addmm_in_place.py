# addmm, then ReLU in place.
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.fc = nn.Linear(features, out)

    def forward(self, x):
        return torch.addmm(self.fc.bias, x, self.fc.weight.t()).relu_()
