# The result is a transposed view of a product that was made the other way round, in chunks that a thread pool computes.
# task: linear
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(192, 80, bias=False)
        self.pool = ThreadPoolExecutor(2)

    def forward(self, x):
        y = torch.empty(80, x.shape[0])
        parts = zip(self.fc.weight.detach().chunk(2), y.chunk(2))
        for done in [self.pool.submit(torch.mm, w, x.t(), out=out) for w, out in parts]:
            done.result()
        return y.t()
