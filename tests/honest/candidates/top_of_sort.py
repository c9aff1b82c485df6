# Two outputs, places among them, from a stable sort and a gather.
# task: row_max
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        places = torch.sort(x, dim=1, descending=True, stable=True).indices[:, 0]
        return torch.gather(x, 1, places[:, None]).squeeze(1), places
