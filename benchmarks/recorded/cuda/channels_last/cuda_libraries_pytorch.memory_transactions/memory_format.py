# Conversion to the channels_last memory format, then a view.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.to(memory_format=torch.channels_last).permute(0, 2, 3, 1)
