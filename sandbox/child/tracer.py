"""Boxed program: what references are, as Traces. Imports torch once; each reference then runs in a child of its own.

    python -P -m hiera_mcp.sandbox.child.tracer --fd N [--watch FOLDER …]

It says `{"event": "ready"}` when torch is imported. To each `{"request": TraceRequest}` it answers `{"trace": Trace}` or
`{"error": {"kind": "task" | "toolchain", "what", "todo", "valid"}}`; `toolchain` when torch itself is missing, which is not
the reference's fault. A reference that ends its process ends this program in the same way, and one that leaves files behind
or changes what this process has in common with the next one (`shared_state.py`) ends it after the answer: the next reference
then finds a fresh box.
"""

import argparse
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

from hiera_mcp.sandbox.child import (
    lazy_dynamo,
    leftovers,
    trace_cases,
    trace_flow,
    trace_notes,
    trace_probe,
    trace_state,
    wire,
)
from hiera_mcp.sandbox.child.prctl import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, prctl
from hiera_mcp.sandbox.child.shared_state import SharedState
from hiera_mcp.sandbox.child.trace_forward import Observation, observe
from hiera_mcp.sandbox.child.trace_load import MODULE, Refused
from hiera_mcp.sandbox.child.trace_state import StateTensor
from hiera_mcp.sandbox.child.tree import end_descendants, wait_for

TORCH = (
    "Install torch into the Python environment of hiera_mcp (`pip install torch`): references are run with it, in a box "
    "that sees this environment and no other."
)

GUESS: dict[str, Any] = {"bandwidth": [[1 << 20, 5e9]], "flops": {"fp32": 5e10}}
"""Rates of a slow processor, where none were measured."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tracer")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument(
        "--watch", nargs="*", default=[], help="folders of the box's own, beside its work folder and /tmp"
    )
    options = parser.parse_args(argv)
    sock = socket.socket(fileno=options.fd)
    sys.dont_write_bytecode = True
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # a reference that calls torch.compile is traced as it stands
    os.environ["OMP_WAIT_POLICY"] = "passive"  # tracers that run side by side would spin in each other's way
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)  # no reference may look into this process, or write into it
    missing = _import_torch()
    untouched = SharedState.now((os.environ["HIERA_BOX"], tempfile.gettempdir(), *options.watch))
    wire.send(sock, {"event": "ready"})
    while untouched.holds():
        try:
            order, _ = wire.receive(sock)
        except wire.Closed:
            break
        wire.send_body(sock, missing or _in_a_child(sock, order["request"]))
    return 0


def _import_torch() -> bytes | None:
    """Import all that each trace needs, before any code of a reference. The answer to everything when torch is missing."""
    try:
        torch: Any = importlib.import_module("torch")
        with lazy_dynamo.fake_mode():
            torch.ones(1).relu()  # the first operator imports sympy, which takes longer than most traces
    except (ImportError, OSError) as e:
        error: dict[str, Any] = {
            "kind": "toolchain",
            "what": f"torch cannot be imported: {e}.",
            "todo": TORCH,
            "valid": [],
        }
        return json.dumps({"error": error}).encode()
    gc.freeze()  # what no collection touches stays shared with the children
    return None


def _in_a_child(sock: socket.socket, request: dict[str, Any]) -> bytes:
    """The answer to one request."""
    work = Path(tempfile.mkdtemp(prefix="trace-", dir=os.environ["HIERA_BOX"]))
    child = os.fork()
    if child == 0:
        sock.close()
        _trace_and_end(request, work)
    code = wait_for(child)
    end_descendants()
    result = leftovers.read_result(work / "result.json")
    shutil.rmtree(work, ignore_errors=True)
    if code or result is None:
        _end_likewise(code)
    return result


def _trace_and_end(request: dict[str, Any], work: Path) -> NoReturn:
    """In the child. Its parent's own clean-up, at the end of the interpreter, is not its business."""
    code = 1
    try:
        os.setsid()
        prctl(PR_SET_DUMPABLE, 1)
        result = json.dumps(_result(request, work))
        (work / "result.json").write_text(result)
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end_likewise(code: int) -> NoReturn:
    """End as the child did: by exit status `code`, or by signal -`code`."""
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _result(request: dict[str, Any], work: Path) -> dict[str, Any]:
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
