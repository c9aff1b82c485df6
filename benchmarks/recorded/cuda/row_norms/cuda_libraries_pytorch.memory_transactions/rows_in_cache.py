# Pieces of 2048 rows (16 MB): the division finds them in the L2 cache and writes straight into the output.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        for rows, result in zip(x.split(2048), out.split(2048)):
            torch.div(rows, torch.linalg.vector_norm(rows, dim=1, keepdim=True).add_(1e-6), out=result)
        return out
