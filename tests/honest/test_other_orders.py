"""Honest arithmetic in another order than the reference's is right, whatever the inputs: sums in pieces, Winograd's
convolution, variances from squares. Its figures are checked without a judge, so many can be tried.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from hiera_mcp.sandbox.child.compare import expect
from hiera_mcp.sandbox.child.draws import OWN, distort, seeded

Function = Callable[[Any], Any]
TYPES: dict[str, tuple[Any, float]] = {
    "float32": (torch.float32, 1e-4),
    "bfloat16": (torch.bfloat16, 1e-2),
    "float16": (torch.float16, 1e-2),
}
FACTOR = torch.sin(torch.arange(96 * 256, dtype=torch.float64)).view(96, 256) / 12
FILTER = torch.cos(torch.arange(32 * 16 * 9, dtype=torch.float64) ** 1.1).view(32, 16, 3, 3) / 9
BIAS = torch.linspace(-3, 1, 32, dtype=torch.float64)


def factor(x: Any) -> Any:
    return FACTOR.to(x.dtype)


def pieces(x: Any) -> Any:
    """x @ FACTOR.T in eight partial sums."""
    parts = zip(x.chunk(8, 1), factor(x).chunk(8, 1), strict=True)
    return torch.stack([a @ b.T for a, b in parts]).sum(0)


def winograd(x: Any) -> Any:
    """A convolution with FILTER by F(2×2, 3×3)."""
    b = torch.tensor([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1.0]])
    g = torch.tensor([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1.0]])
    a = torch.tensor([[1, 1, 1, 0], [0, 1, -1, -1.0]])
    tiles = b @ x.unfold(2, 4, 2).unfold(3, 4, 2) @ b.T
    filters = g @ FILTER.float() @ g.T
    y = a @ torch.einsum("nchwij,ocij->nohwij", tiles, filters) @ a.T
    n, o, h, w = y.shape[:4]
    return y.permute(0, 1, 2, 4, 3, 5).reshape(n, o, 2 * h, 2 * w)


def by_squares(x: Any, dims: tuple[int, ...]) -> Any:
    mean = x.mean(dims, keepdim=True)
    return (x - mean) * ((x * x).mean(dims, keepdim=True) - mean**2 + 1e-5).rsqrt()


def softmax(x: Any) -> Any:
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.view(64, 8, 64).sum(2).sum(1, keepdim=True)


PAIRS: dict[str, tuple[tuple[int, ...], Function, Function]] = {
    "product and ReLU": ((64, 256), lambda x: F.relu(x @ factor(x).T), lambda x: F.relu(pieces(x))),
    "convolution": ((4, 16, 18, 18), lambda x: F.conv2d(x, FILTER.to(x.dtype)), winograd),
    "convolution, bias, ReLU": (
        (4, 16, 18, 18),
        lambda x: F.relu(F.conv2d(x, FILTER.to(x.dtype), BIAS.to(x.dtype))),
        lambda x: F.relu(winograd(x) + BIAS.float().view(1, -1, 1, 1)),
    ),
    "layer norm": ((64, 256), lambda x: F.layer_norm(x, (256,)), lambda x: by_squares(x, (1,))),
    "batch norm": (
        (64, 32, 4, 4),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: by_squares(x, (0, 2, 3)),
    ),
    "softmax": ((64, 512), lambda x: F.softmax(x, 1), softmax),
    "centred": (
        (64, 256),
        lambda x: x - x.mean(1, keepdim=True),
        lambda x: x - x.view(64, 16, 16).sum(2).sum(1)[:, None] / 256,
    ),
    "residual": (
        (64, 256),
        lambda x: x + 1e-3 * (x @ factor(x).T @ factor(x)),
        lambda x: x + 1e-3 * (pieces(x) @ factor(x)),
    ),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", PAIRS)
def test_another_order_of_the_same_arithmetic_is_right(name: str, dtype: str) -> None:
    shape, reference, other = PAIRS[name]
    seeded(5)
    kind, limit = TYPES[dtype]
    for distribution in (OWN, "signed", "large", "small", "outliers", "graded", "shifted"):
        (x,) = distort(distribution, [torch.rand(shape).to(kind)])
        own, oracle = reference(x).contiguous(), reference(x.double())
        if not (bool(own.isfinite().all()) and bool(oracle.isfinite().all())):
            continue  # the judge drops such a trial
        expected = expect(own, oracle, {"rtol": limit, "atol": limit, "reference_factor": 4.0})
        assert expected.error(other(x.float()).to(kind).contiguous()) <= 1, distribution
