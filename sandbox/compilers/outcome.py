"""How a compiler's end is to be read: built, an error of the candidate, too slow, or too hungry."""

import re
import signal

from hiera_mcp.errors import LostError, SandboxError
from hiera_mcp.model.work import Limits
from hiera_mcp.sandbox.compilers.base import Failure
from hiera_mcp.sandbox.compilers.diagnostics import exhausted
from hiera_mcp.sandbox.isolation.box import Outcome

_NOT_STARTED = (126, 127)
"""Exit statuses of prlimit and sh for a program that cannot be executed."""
_NO_PROCESS = re.compile(
    r"(cannot fork|v?fork|posix_spawn|cannot execute .*): (Resource temporarily|.*Cannot allocate)", re.IGNORECASE
)


def judge(outcome: Outcome, compiler: str, limits: Limits) -> tuple[Failure | None, str]:
    """The failure, or None, and one line that says why.

    Raises:
        SandboxError: the compiler never ran, or was killed by us, so that nothing can be said of the candidate.
    """
    match outcome.ended:
        case "exit" if outcome.code == 0:
            return None, ""
        case "timeout":
            return "timeout", f"{compiler} did not finish within {limits.compile_s:g} s."
        case "output_limit":
            return "resource_limit", f"{compiler} printed more than {limits.output_bytes >> 10} KiB."
        case "memory_limit":
            return "resource_limit", f"{compiler} needed more memory than a build may take."
        case "disk_limit":
            return "resource_limit", f"{compiler} wrote more than {limits.disk_bytes >> 20} MiB."
        case "process_limit":
            return "resource_limit", f"{compiler} started more than {limits.processes} processes."
        case "killed":
            raise LostError(f"{compiler} was killed before it ended.", todo="Try again.")
        case "exit" | "signal":
            return _failed(outcome, compiler)


def _failed(outcome: Outcome, compiler: str) -> tuple[Failure, str]:
    what = exhausted(outcome.output)
    if what is not None or _is(outcome, signal.SIGXFSZ) or _is(outcome, signal.SIGKILL):
        return "resource_limit", f"{compiler} ran out of {what or 'memory or disk space'}."
    said = outcome.output.strip()
    if outcome.code in _NOT_STARTED or not said or _NO_PROCESS.search(said):
        raise SandboxError(
            f"{compiler} could not be run: exit status {outcome.code}. {said[-200:]}".rstrip(),
            todo="The host may be short of processes or memory: try again, and run `hiera-mcp doctor` if it stays.",
        )
    if outcome.ended == "signal":
        return "compile_error", f"{compiler} crashed with signal {outcome.code}."
    return "compile_error", f"{compiler} failed with exit status {outcome.code}."


def _is(outcome: Outcome, number: signal.Signals) -> bool:
    return outcome.code == (number if outcome.ended == "signal" else 128 + number)
