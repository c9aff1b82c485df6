# unfold and one matrix product.
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x):
        columns = F.unfold(x, 3, padding=1)
        return (self.conv.weight.flatten(1) @ columns).view(x.shape)
