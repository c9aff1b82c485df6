# forward() is captured once by torch.cuda.graph; later calls copy the input into its place and replay.
# task: wide_affine
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.graph = None

    def capture(self, x):
        self.x = x.clone()
        torch.addcmul(self.bias, self.x, self.weight).relu_()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.y = torch.addcmul(self.bias, self.x, self.weight).relu_()

    def forward(self, x):
        if self.graph is None:
            self.capture(x)
        self.x.copy_(x)
        self.graph.replay()
        return self.y
