"""Drawing inputs and parameters: seeds of the operating system, several distributions, default parameters shaken.

Integer and bool tensors always come from the task's own `get_inputs`: what their values mean is known to the task only.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

OWN, HUGE = "own", "huge"
DISTRIBUTIONS = (OWN, "signed", "large", "small", HUGE, "outliers", "graded", "shifted")
"""own: as the task draws; signed: normal, with the own draw's root mean square; large, small, huge: the own draw times 8,
1/64 and 256; outliers: the own draw with one element in 4096, at random places, times 64 (catches work that is only sampled);
graded: signed, each sample (index of the leading dimension) at its own scale between 1/256 and 256; shifted: signed, each
sample moved by up to four root mean squares. The last two bring some sample out of a clamp or a saturation."""

STRETCH = 1024
"""Elements in a row that are changed."""


def secret_seed() -> int:
    """A seed that nobody can know in advance."""
    return int.from_bytes(os.urandom(8), "little") >> 1


def seeded(seed: int) -> None:
    """Seed torch's generators of all devices."""
    import torch

    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]


def distort(distribution: str, tensors: Sequence[Any]) -> list[Any]:
    """Freshly drawn tensors of the task's own distribution → those of another one. Uses torch's global generator."""
    return [_DISTORT[distribution](t) if t.is_floating_point() else t for t in tensors]


def _signed(x: Any) -> Any:
    return x.new_empty(x.shape).normal_() * _rms(x)


def _graded(x: Any) -> Any:
    """The scales are spread evenly over the samples, so that few samples have small and large ones too."""
    import torch

    scales = _per_sample(x).uniform_(-8, 8)
    if scales.numel() > 1:
        even = torch.linspace(-8, 8, scales.numel(), device=x.device, dtype=x.dtype)
        scales = scales / 16 + even[torch.randperm(scales.numel(), device=x.device)].view(scales.shape)
    return _signed(x) * 2.0**scales


def _shifted(x: Any) -> Any:
    return _signed(x) + 4 * _rms(x) * _per_sample(x).uniform_(-1, 1)


def _per_sample(x: Any) -> Any:
    """One value for each index of the leading dimension, in a shape that broadcasts."""
    return x.new_empty([n if d == 0 else 1 for d, n in enumerate(x.shape)])


def _outliers(x: Any) -> Any:
    import torch

    flat = x.clone().flatten()
    if flat.numel():
        places = torch.randint(flat.numel(), (max(1, flat.numel() // 4096),), device=x.device)
        flat[places] *= 64
    return flat.view(x.shape)


def _rms(x: Any) -> Any:
    """Root mean square; of nothing but zeros (a first hidden state, say) 1, since whoever does not read them must be told."""
    scale = x.double().pow(2).mean().sqrt() if x.numel() else None
    return 1.0 if scale is None or not bool(scale) else scale.clamp(min=1e-6).to(x.dtype)


_DISTORT: dict[str, Callable[[Any], Any]] = {
    OWN: lambda x: x,
    "signed": _signed,
    "large": lambda x: x * 8,
    "small": lambda x: x / 64,
    HUGE: lambda x: x * 256,
    "outliers": _outliers,
    "graded": _graded,
    "shifted": _shifted,
}


def changed_in_part(tensors: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The tensors, with a short stretch of each at a random place taken from another draw, halved so that sums change too: what
    knows inputs again by a part of them takes these for the same. Integers stay: what two draws of them are together (sorted, a
    permutation) is not known.
    """
    return [_with_stretch_of(a, b) if a.is_floating_point() else a for a, b in zip(tensors, others, strict=True)]


def _with_stretch_of(tensor: Any, other: Any) -> Any:
    import torch

    length = min(STRETCH, -(-tensor.numel() // 4))
    start = int(torch.randint(tensor.numel() - length + 1, ()))
    flat = tensor.flatten().clone()
    flat[start : start + length] = 0.5 * other.flatten()[start : start + length]
    return flat.view(tensor.shape)


def vary(tensors: Sequence[Any]) -> list[Any]:
    """Floating-point values times a factor between 0.9 and 1.1, under a seed of its own: for a task that always draws
    the same values, so that results cannot be kept from call to call. Signs and zeros stay."""
    seeded(secret_seed())
    return [t * t.new_empty(t.shape).uniform_(0.9, 1.1) if t.is_floating_point() else t for t in tensors]


def perturb(path: str, tensor: Any, is_buffer: bool) -> Any:
    """A parameter moved away from its default, so that skipping it shows (an affine weight of 1, a bias of 0).

    Buffers other than running statistics are left alone: masks and tables have a meaning that noise would destroy.
    """
    leaf = path.rpartition(".")[2]
    if not tensor.is_floating_point() or (is_buffer and leaf not in ("running_mean", "running_var")):
        return tensor
    noise = tensor.new_empty(tensor.shape)
    if leaf == "running_var":
        return tensor * noise.uniform_(0.5, 2.0)
    spread = 0.25 * _rms(tensor) if bool((tensor != 0).any()) else 0.25
    return tensor + noise.normal_() * spread


def redraw(path: str, tensor: Any, is_buffer: bool, gain: float, offset: float) -> Any:
    """A parameter drawn anew so that a signal neither dies on its way through many layers nor drowns in biases.

    Weights (at least two dimensions longer than 1) become normal with variance gain / fan_in: 2 keeps the scale where ReLU
    halves the variance, 1 where nothing does. Others are scales, which move by half, where their mean is above 1/2; else
    offsets around 0 of the given standard deviation. Buffers as in `perturb`.
    """
    if not tensor.is_floating_point() or (is_buffer and not path.endswith(("running_mean", "running_var"))):
        return tensor
    noise = tensor.new_empty(tensor.shape).normal_()
    if path.endswith("running_var"):
        return tensor.new_empty(tensor.shape).uniform_(0.5, 2.0)
    if sum(n > 1 for n in tensor.shape) > 1:
        return noise * (gain * tensor.shape[0] / tensor.numel()) ** 0.5
    scale = tensor.numel() and float(tensor.double().mean()) > 0.5
    return tensor * (1 + 0.5 * noise) if scale else offset * noise


def resample(values: Any, shape: Sequence[int]) -> Any:
    """Values of the task's own draw at random places, in another shape: for cases that the task itself does not draw."""
    import torch

    if tuple(values.shape) == tuple(shape):
        return values
    flat = values.flatten()
    return flat[torch.randint(max(1, flat.numel()), tuple(shape), device=values.device)]
