# Two torch streams share the work; both wait for the current one, which waits for both.
# task: wide_affine
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.side = [torch.cuda.Stream(), torch.cuda.Stream()]

    def forward(self, x):
        current = torch.cuda.current_stream()
        y = torch.empty_like(x)
        for stream, part, out in zip(self.side, x.chunk(2), y.chunk(2)):
            stream.wait_stream(current)
            with torch.cuda.stream(stream):
                torch.addcmul(self.bias, part, self.weight, out=out).relu_()
            y.record_stream(stream)
        for stream in self.side:
            current.wait_stream(stream)
        return y
