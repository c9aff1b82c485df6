# The convolution in channels_last order, where neighbouring channels lie together.
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=True)

    def forward(self, x):
        return self.conv(x.contiguous(memory_format=torch.channels_last)).contiguous()
