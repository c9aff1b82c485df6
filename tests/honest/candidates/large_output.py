# Memory-bound PyTorch on 16 MB: bringing the result over takes as long as the work itself.
# task: large
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
