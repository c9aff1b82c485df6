# The result of 16 MB is a transposed view: its elements do not lie in the contract's order.
# task: large
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x.t().contiguous()).t()
