# ReLU in place on the convolution's result.
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1)

    def forward(self, x):
        return self.conv(x).relu_()
