"""Boxed program: what a reference is, as a Trace. Reads a TraceRequest, runs the user's code, writes the result.

    python -P -m hiera_mcp.sandbox.child.tracer [--request /box/request.json] [--result /box/result.json]

The result is `{"trace": Trace}` or `{"error": {"kind": "task" | "toolchain", "what", "todo", "valid"}}`; `toolchain` when
torch itself is missing, which is not the reference's fault. Any other end of the process (a signal, an exit status other
than 0, no result file) means that the reference ended it, or that the tracer broke.
"""

import argparse
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from hiera_mcp.sandbox.child import trace_cases, trace_flow, trace_notes, trace_probe, trace_state
from hiera_mcp.sandbox.child.trace_forward import Observation, observe
from hiera_mcp.sandbox.child.trace_load import MODULE, Refused
from hiera_mcp.sandbox.child.trace_state import StateTensor

TORCH = (
    "Install torch into the Python environment of hiera_mcp (`pip install torch`): references are run with it, in a box "
    "that sees this environment and no other."
)

GUESS: dict[str, Any] = {"bandwidth": [[1 << 20, 5e9]], "flops": {"fp32": 5e10}}
"""Rates of a slow processor, where none were measured."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tracer")
    parser.add_argument("--request", type=Path, default=Path("/box/request.json"))
    parser.add_argument("--result", type=Path, default=Path("/box/result.json"))
    options = parser.parse_args(argv)
    request = json.loads(options.request.read_text(encoding="utf-8"))
    sys.dont_write_bytecode = True
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # a reference that calls torch.compile is traced as it stands
    options.result.write_text(json.dumps(_result(request, options.result.parent)))
    return 0


def _result(request: dict[str, Any], work: Path) -> dict[str, Any]:
    try:
        importlib.import_module("torch")  # before any code of the reference: a missing torch is not its fault
    except (ImportError, OSError) as e:
        return {"error": {"kind": "toolchain", "what": f"torch cannot be imported: {e}.", "todo": TORCH, "valid": []}}
    try:
        return {"trace": trace(request, work)}
    except Refused as e:
        return {"error": e.as_dict()}


def trace(request: dict[str, Any], work: Path) -> dict[str, Any]:
    """The Trace of a reference, as plain data.

    Raises:
        Refused: the reference cannot become a contract.
    """
    path = work / f"{MODULE}.py"
    path.write_text(request["source"], encoding="utf-8")
    precision, limit = str(request["precision"]), int(request["probe_bytes"])
    seen = observe(path, precision, limit)
    main = trace_cases.interface(seen)
    result: dict[str, Any] = {
        "case": main.pop("name"),
        **main,
        "further_cases": [trace_cases.interface(other) for other in seen.further],
        "parameters": [trace_state.row(s, seen.record.written) for s in seen.state if _belongs(s, seen)],
        **trace_flow.flow(seen.record),
        "modules": seen.modules,
        "touched_bytes": _touched(seen),
        "notes": trace_notes.notes(seen),
    }
    return result | _probed(path, result, request, seen)


def _belongs(item: StateTensor, seen: Observation) -> bool:
    """Parameters and registered buffers always; a plain attribute only when forward() reads it."""
    registered = item.path.rpartition(".")[2] not in vars(item.module)
    return registered or f"state.{item.path}" in seen.record.touched


def _touched(seen: Observation) -> dict[str, int]:
    """Bytes of each input and state tensor that forward() reads, each byte once.

    On real data forward() may read behind the recorder's back (through NumPy, say): unread tensors are left out then.
    """
    import torch

    tensors = {f"state.{s.path}": s.tensor for s in seen.state}
    tensors |= {f"inputs.{n}": a for n, a in zip(seen.names, seen.args, strict=True) if isinstance(a, torch.Tensor)}
    tensors |= {f"inputs.{n}": t for n, t in seen.record.draws}
    touched = {owner: min(sum(seen.record.touched.get(owner, {}).values()), _bytes(t)) for owner, t in tensors.items()}
    return {owner: size for owner, size in touched.items() if size or seen.stage != "real"}


def _probed(path: Path, result: dict[str, Any], request: dict[str, Any], seen: Observation) -> dict[str, Any]:
    """The fate of trivial outputs, from real runs."""
    rates = request.get("rates") or GUESS
    budget = trace_probe.Budget(
        bytes=int(request["probe_bytes"]),
        seconds=float(request["probe_s"]),
        bandwidth=min(rate for _, rate in rates["bandwidth"]),
        flops=float(rates["flops"]["fp32"]),
    )
    probe = trace_probe.probe(result, path, str(request["precision"]), _cost(seen), budget)
    return {
        "trivial_outputs": probe.trivial,
        "probe_reason": probe.reason,
        "probe_sizes": probe.sizes,
        "probe_remedy": probe.remedy,
        "probe_unverifiable": probe.unverifiable,
    }


def _cost(seen: Observation) -> trace_probe.Cost:
    rows = [(o.get("count", 1), o["flops"], o["bytes_read"] + o["bytes_written"]) for o in seen.record.operators]
    return trace_probe.Cost(
        flops=sum(n * flops for n, flops, _ in rows),
        bytes=sum(n * size for n, _, size in rows),
        largest=max((size for _, _, size in rows), default=0),
        calls=sum(n for n, _, _ in rows),
        state=sum(_bytes(s.tensor) for s in seen.state),
    )


def _bytes(value: Any) -> int:
    import torch

    return value.numel() * value.element_size() if isinstance(value, torch.Tensor) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
