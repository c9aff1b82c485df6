# Names and comments speak of clocks, hooks, caches and the judge; a clock is read, and what it says is not used.
# task: affine
import gc
import sys
import time

import torch
import torch.nn as nn

# time.perf_counter = lambda: 0; torch.cuda.Event.elapsed_time = fake; sys.modules["judge"]; os._exit(0)
FAKE_CACHE = {"expected": None, "seed": 0, "/proc/self/mem": gc.isenabled()}


def patched_synchronize(answer):
    return answer.clamp_(min=FAKE_CACHE["seed"])


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.reference_model_forward(torch.rand(2, features))

    def reference_model_forward(self, x):
        started = time.perf_counter()
        y = patched_synchronize(torch.addcmul(self.bias.detach(), x, self.weight.detach()))
        self.slept = (time.perf_counter() - started, len(sys.argv))
        return y

    def forward(self, x):
        return self.reference_model_forward(x)
