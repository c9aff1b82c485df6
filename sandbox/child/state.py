"""What a torch module carries from call to call: parameters, buffers, and tensors that are plain attributes.

A path is the chain of attribute names from the model, `layers.0.weight`; each kind is reached by it.
"""

import functools
from collections.abc import Iterable, Iterator
from typing import Any


def registered(model: Any) -> dict[str, Any]:
    """Parameters and buffers under all of their paths."""
    return dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))


def reach(model: Any, path: str) -> Any | None:
    """The tensor at `path`; None where there is none."""
    import torch

    try:
        found = functools.reduce(getattr, path.split("."), model)
    except AttributeError:
        return None
    return found if isinstance(found, torch.Tensor) else None


def plain_tensors(model: Any) -> Iterator[tuple[Any, str, Any]]:
    """(module, attribute, tensor) of each tensor that is neither parameter nor buffer."""
    import torch

    modules: list[Any] = list(model.modules())
    for module in modules:
        for name, value in list(module.__dict__.items()):
            if isinstance(value, torch.Tensor):
                yield module, name, value


def memory_of(model: Any, arguments: Iterable[Any] = ()) -> frozenset[int]:
    """Where the memory begins that a model's state and the arguments of a call lie in."""
    import torch

    state = [*registered(model).values(), *(t for _, _, t in plain_tensors(model))]
    tensors = [*state, *(a for a in arguments if isinstance(a, torch.Tensor))]
    return frozenset(t.untyped_storage().data_ptr() for t in tensors)


def moved(model: Any, device: str, dtype: Any) -> Any:
    """The model on the device, its floating-point state in `dtype`, the plain attributes too.

    `nn.Module.to` leaves those behind. One that is a parameter or buffer by another name, or is held twice, stays shared.
    """
    before = {id(t): path for path, t in registered(model).items()}
    plain = list(plain_tensors(model))
    model = model.to(device=device, dtype=dtype)
    after = registered(model)
    done = {key: after[path] for key, path in before.items()}
    for module, name, value in plain:
        if id(value) not in done:
            done[id(value)] = value.detach().to(device, dtype if value.is_floating_point() else value.dtype)
        setattr(module, name, done[id(value)])
    return model


def assign(model: Any, path: str, tensor: Any) -> None:
    """Put a tensor at `path`, where `reach` finds one already."""
    owner, _, name = path.rpartition(".")
    setattr(functools.reduce(getattr, owner.split("."), model) if owner else model, name, tensor)


class Snapshot:
    """The buffers and attributes of a model as they are now; `put_back` undoes what calls have done to them since:
    running statistics, a hidden state, a cache. Parameters are not looked at.
    """

    def __init__(self, model: Any) -> None:
        modules: list[Any] = list(model.modules())
        dictionaries: list[dict[str, Any]] = [d for m in modules for d in (m.__dict__, m._buffers)]
        self._entries = [(live, dict(live)) for live in dictionaries]
        tensors = [*model.buffers(), *(t for _, _, t in plain_tensors(model))]
        self._contents = [(t, t.clone()) for t in tensors]
        self._versions = [t._version for t in tensors]
        self._storages = {t.untyped_storage().data_ptr() for t in tensors}

    def own(self, results: list[Any]) -> list[Any]:
        """The results of a call, copied where they share memory with what `put_back` may overwrite."""
        return [t.clone() if t.untyped_storage().data_ptr() in self._storages else t for t in results]

    def put_back(self) -> bool:
        """Old tensors at the old places, with the old contents; whether anything had changed."""
        import torch

        rebound = [_put_back(live, old) for live, old in self._entries]
        versions = [t._version for t, _ in self._contents]
        with torch.no_grad():
            for (tensor, content), now, then in zip(self._contents, versions, self._versions, strict=True):
                if now != then:
                    tensor.copy_(content)
        self._versions = [t._version for t, _ in self._contents]
        return any(rebound) or self._versions != versions


def _put_back(live: dict[str, Any], old: dict[str, Any]) -> bool:
    if live.keys() == old.keys() and all(live[k] is old[k] for k in old):
        return False
    live.clear()
    live.update(old)
    return True
