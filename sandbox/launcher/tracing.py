"""Trace a reference in a box and read what the tracer says, which the reference could have made it say as well."""

from typing import Any

from pydantic import ValidationError

from hiera_mcp.errors import SandboxError, TaskError, error_from_dict
from hiera_mcp.model.work import Trace, TraceRequest
from hiera_mcp.sandbox.child.wire import Malformed
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.isolation.box import Outcome
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.verdict import LIMITS, signal_name, tail


async def trace(host: Host, request: TraceRequest, notify: Notify) -> Trace:
    """Run the tracer on the reference.

    Several references may be traced at once, while nobody measures on this host's processor.

    Raises:
        TaskError: the reference is at fault; says what to change.
        ToolchainError: torch is missing here.
    """
    isolation = host.isolation
    async with host.locks.loading(notify):
        await notify("tracing the reference", None)
        try:
            answer = await host.tracers.answer(isolation, request)
        except Malformed as e:
            raise unreadable(e) from e
    if isinstance(answer, dict):
        return read_trace(answer)
    raise stopped(answer, request.timeout_s) if answer.ended not in ("exit", "signal") else crashed(answer)


def read_trace(answer: dict[str, Any]) -> Trace:
    """The trace in a tracer's answer, or the error that it tells. Raises as `trace` does."""
    if isinstance(answer.get("error"), dict):
        raise error_from_dict(answer["error"])
    try:
        return Trace.model_validate(answer["trace"])
    except (KeyError, ValidationError) as e:
        raise unreadable(e) from e


def unreadable(error: Exception) -> SandboxError:
    return SandboxError(f"The tracer left a result that cannot be read: {error}", todo="Report this text.")


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
