"""The stated rules of a trace: mode, randomness, state, writes. One line each; the first word is the subject."""

from collections.abc import Sequence

from hiera_mcp.sandbox.child.trace_forward import Observation


def notes(seen: Observation) -> list[str]:
    """Exactly one line is `mode: train` or `mode: eval`: the mode in which the judge runs the reference."""
    lines = [f"mode: {seen.mode}"]
    lines += _randomness(seen)
    lines += _draws(seen)
    lines += _initialisation(seen)
    lines += _kinds_of_values(seen)
    lines += _batch_statistics(seen)
    lines += _writes(seen)
    lines += _strides(seen)
    if seen.record.captured:
        listed = _listed(sorted(set(seen.record.captured)))
        lines.append(
            f"captured: forward() reads tensors that are neither argument nor state ({listed}); candidates are not "
            "given them. Register them as buffers to have them handed over"
        )
    if seen.stage != "fake":
        lines.append("data-dependent: shapes and operators were observed on drawn data and may differ for other data")
    return lines


def _randomness(seen: Observation) -> list[str]:
    if not seen.switched:
        return []
    drawn = _listed(sorted(set(seen.switched)))
    return [f"randomness: in train mode forward() draws random numbers ({drawn}); the reference is switched to eval"]


def _draws(seen: Observation) -> list[str]:
    if not seen.record.draws:
        return []
    shapes = _listed([f"{n} {list(t.shape)}" for n, t in seen.record.draws])
    return [f"draws: forward() draws random numbers; they are inputs ({shapes}), the same for reference and candidate"]


def _initialisation(seen: Observation) -> list[str]:
    lines: list[str] = []
    if seen.state:
        lines.append(
            "weight initialisation: the constructor draws the state anew for each evaluation; candidates are given it"
        )
    tied = [f"{s.path} = {other}" for s in seen.state for other in s.aliases]
    return [*lines, f"tied: one tensor under several names ({_listed(tied)})"] if tied else lines


def _kinds_of_values(seen: Observation) -> list[str]:
    """Integers, scalars, several outputs."""
    import torch

    lines: list[str] = []
    named = list(zip(seen.names, seen.args, strict=True))
    whole = [n for n, a in named if isinstance(a, torch.Tensor) and not a.is_floating_point()]
    if whole:
        lines.append(f"integer inputs: {_listed(whole)} keep their type and always come from the task's own draw")
    scalars = [n for n, a in named if not isinstance(a, torch.Tensor)]
    if scalars:
        lines.append(f"scalars: {_listed(scalars)} are constants of the case, HIERA_SCALAR_… in contract.h")
    if len(seen.outputs) > 1:
        lines.append(f"tuples: forward() returns {len(seen.outputs)} tensors, in the order of the struct")
    return lines


def _batch_statistics(seen: Observation) -> list[str]:
    norms = [c for c in seen.classes if "BatchNorm" in c]
    if not norms:
        return []
    if seen.mode == "train":
        return [
            "batch norm: normalises by the statistics of the batch itself (train mode), not by running_mean and var"
        ]
    return ["batch norm: normalises by running_mean and running_var (eval mode)"]


def _writes(seen: Observation) -> list[str]:
    written = sorted(set(seen.record.written))
    inputs = [w.removeprefix("inputs.") for w in written if w.startswith("inputs.")]
    state = [w.removeprefix("state.") for w in written if w.startswith("state.")]
    lines: list[str] = []
    if inputs:
        lines.append(f"in place: forward() writes to its inputs ({_listed(inputs)}); candidates must leave them as is")
    if state:
        lines.append(f"updates: forward() updates {_listed(state)}; these are not outputs, candidates leave them as is")
    return lines


def _strides(seen: Observation) -> list[str]:
    import torch

    named = [(n, a) for n, a in zip(seen.names, seen.args, strict=True) if isinstance(a, torch.Tensor)]
    strided = [n for n, t in [*named, *seen.outputs] if not t.is_contiguous()]
    if not strided:
        return []
    return [f"layout: {_listed(strided)} is strided in the reference; candidates see it dense, in C order of its shape"]


def _listed(items: Sequence[str], most: int = 5) -> str:
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more
