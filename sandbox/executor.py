"""The executor interface: what the rest of the project knows about running untrusted code.

The local launcher (sandbox/local.py) is the first executor. Another one, for GPUs on many hosts, needs these nine
methods and plain data only.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from hiera_mcp.model.evaluation import Evaluation, NotRun
from hiera_mcp.model.profile import Profiled
from hiera_mcp.model.sanitizer import Sanitized, SanitizeRequest
from hiera_mcp.model.work import (
    CheckReport,
    CheckRequest,
    CompareRequest,
    DoctorReport,
    EvaluateRequest,
    HostRates,
    PairReport,
    ProfileRequest,
    Trace,
    TraceRequest,
)

Notify = Callable[[str, float | None], Awaitable[None]]
"""Receives progress: a line of text, and a fraction from 0 to 1 where it can be told."""


class Executor(Protocol):
    """Runs work on some host. Every method may be cancelled; nothing of the work is left running then.

    Raises:
        TaskError: the reference is at fault (`trace`), or a trivial answer passes on it, whatever the inputs, so that no
            candidate can be judged (`evaluate`).
        SandboxError: the host or a process of ours failed. Never raised for a candidate that fails.
    """

    async def trace(self, request: TraceRequest, notify: Notify) -> Trace: ...

    async def host_rates(self, notify: Notify) -> HostRates: ...

    async def check(self, request: CheckRequest, notify: Notify) -> CheckReport: ...

    async def evaluate(self, request: EvaluateRequest, notify: Notify) -> Evaluation | NotRun: ...

    async def compare(self, request: CompareRequest, notify: Notify) -> PairReport: ...

    async def profile(self, request: ProfileRequest, notify: Notify) -> Profiled: ...

    async def sanitize(self, request: SanitizeRequest, notify: Notify) -> Sanitized: ...

    async def doctor(self, thorough: bool = False) -> DoctorReport: ...

    async def close(self) -> None: ...
