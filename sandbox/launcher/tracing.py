"""Trace a reference in a box and read what the tracer left, which the reference could have written as well."""

import json
from typing import Any, cast

from pydantic import ValidationError

from hiera_mcp.errors import SandboxError, TaskError, error_from_dict
from hiera_mcp.model.work import Trace, TraceRequest
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.isolation import process
from hiera_mcp.sandbox.isolation.box import Outcome
from hiera_mcp.sandbox.launcher import boxes
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.leftovers import read_result
from hiera_mcp.sandbox.launcher.verdict import LIMITS, signal_name, tail


async def trace(host: Host, request: TraceRequest, notify: Notify) -> Trace:
    """Run the tracer on the reference.

    Several references may be traced at once, while nobody measures on this host's processor.

    Raises:
        TaskError: the reference is at fault; says what to change.
        ToolchainError: torch is missing here.
    """
    isolation = host.isolation
    with host.work.folder("trace") as folder:
        (folder / "request.json").write_text(request.model_dump_json())
        spec = boxes.tracer(folder)
        async with host.locks.loading(notify):
            await notify("tracing the reference", None)
            outcome = await process.run(isolation, spec, request.timeout_s)
        return read_trace(read_result(folder / "result.json"), outcome, request)


def read_trace(result: bytes | None, outcome: Outcome, request: TraceRequest) -> Trace:
    """The trace that the tracer left, or the error that it, or its end, tells. Raises as `trace` does."""
    if outcome.ended not in ("exit", "signal"):
        raise stopped(outcome, request.timeout_s)
    if result is None:
        raise crashed(outcome)
    try:
        message: Any = json.loads(result)
        if isinstance(message, dict) and "error" in message:
            raise error_from_dict(cast("dict[str, Any]", message)["error"])
        return Trace.model_validate(message["trace"])
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError) as e:
        raise SandboxError(f"The tracer left a result that cannot be read: {e}", todo="Report this text.") from e


def stopped(outcome: Outcome, timeout_s: float) -> TaskError:
    """The error for a reference that was ended by a limit."""
    words = tail(outcome.output)
    last = f" Its last output: {words}" if words else ""
    if outcome.ended in ("timeout", "killed"):
        return TaskError(
            f"The reference did not end within {timeout_s:g} s.{last}",
            todo="Remove endless loops and slow work from its module level, `__init__`, `forward` and `get_inputs`, "
            "or use smaller shapes.",
        )
    return TaskError(
        f"The reference was stopped: it took {LIMITS[outcome.ended]}.{last}",
        todo="Make its tensors smaller, and let it neither write files, start processes nor print much.",
    )


def crashed(outcome: Outcome) -> TaskError:
    """The error for a reference that took its process down."""
    how = f"by {signal_name(outcome.code)}" if outcome.ended == "signal" else f"with exit status {outcome.code}"
    return TaskError(
        f"The reference ended its process {how}. Its last output: {tail(outcome.output) or '(none)'}",
        todo="It must return from `Model(*get_init_inputs())` and `model(*get_inputs())`; run it by itself to see why.",
    )
