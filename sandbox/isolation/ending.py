"""How a box ended: from the backend's status lines, the first process's exit and our own reason to stop it."""

import json
import signal
from dataclasses import dataclass
from typing import Any, Literal

from hiera_mcp.errors import SandboxError
from hiera_mcp.sandbox.isolation.box import BoxLimits

Stop = Literal["timeout", "output_limit", "memory_limit", "disk_limit", "process_limit", "killed"]
Ended = Literal["exit", "signal"] | Stop

_SIGNAL_BASE = 128
_NEAR_LIMIT = 0.9
_SHOWN = 400


@dataclass(frozen=True)
class Ending:
    """What is known when the first process is gone."""

    stopped: Stop | None
    """Why we killed it, if we did."""
    returncode: int
    """Of the first process; negative for a signal."""
    status: str
    """JSON documents as the backend wrote them."""
    peak_bytes: int
    """Greatest resident set of any one process."""


def status_value(status: str, key: str) -> int | None:
    """The last value of `key` in a sequence of JSON documents, which may be cut off."""
    decoder = json.JSONDecoder()
    found: int | None = None
    text = status.lstrip()
    while text:
        try:
            document, end = decoder.raw_decode(text)
        except ValueError:
            break
        found = _integer(document, key, found)
        text = text[end:].lstrip()
    return found


def interpret(ending: Ending, limits: BoxLimits, output: str) -> tuple[Ended, int]:
    """(how, exit status or signal number).

    A status of 128 + n is read as signal n, as in a shell: that is all that a process in between can pass on.

    Raises:
        SandboxError: the program was never started.
    """
    if ending.stopped is not None:
        return ending.stopped, signal.SIGKILL
    code = status_value(ending.status, "exit-code")
    if code is None and ending.returncode >= 0:
        shown = " ".join(output.split())[:_SHOWN]
        raise SandboxError(f"The sandbox could not be set up: {shown or 'no message'}.", todo="Run `hiera-mcp doctor`.")
    ended, number = _exit_or_signal(ending.returncode if code is None else code)
    if ended == "signal" and number == signal.SIGXFSZ:
        return "disk_limit", number
    near = limits.memory_kind != "none" and ending.peak_bytes >= _NEAR_LIMIT * limits.memory_bytes
    if near and number != 0:
        return "memory_limit", number
    return ended, number


def _exit_or_signal(code: int) -> tuple[Literal["exit", "signal"], int]:
    number = -code if code < 0 else code - _SIGNAL_BASE
    if 0 < number < signal.NSIG:
        return "signal", number
    return "exit", code


def _integer(document: Any, key: str, default: int | None) -> int | None:
    value = document.get(key) if isinstance(document, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return value if isinstance(value, int) else default
