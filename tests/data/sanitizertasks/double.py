"""y = 2 x on a vector whose length no block divides."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1000)]


def get_init_inputs() -> list[object]:
    return []
