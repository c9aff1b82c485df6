"""What the server can ask for, by name."""

from collections.abc import Awaitable, Callable
from typing import Any

from hiera_mcp.errors import NoIsolationError
from hiera_mcp.model.base import Model
from hiera_mcp.model.sanitizer import SanitizeRequest
from hiera_mcp.model.work import CheckRequest, CompareRequest, EvaluateRequest, ProfileRequest, TraceRequest
from hiera_mcp.sandbox import doctor
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.launcher.building import check
from hiera_mcp.sandbox.launcher.comparing import compare
from hiera_mcp.sandbox.launcher.evaluating import evaluate, profile
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.rates import host_rates
from hiera_mcp.sandbox.launcher.sanitizing import sanitize
from hiera_mcp.sandbox.launcher.tracing import trace

Operation = Callable[[Host, Any, Notify], Awaitable[Model]]


async def _trace(host: Host, request: Any, notify: Notify) -> Model:
    return await trace(host, TraceRequest.model_validate(request), notify)


async def _host_rates(host: Host, request: Any, notify: Notify) -> Model:
    return await host_rates(host, notify)


async def _check(host: Host, request: Any, notify: Notify) -> Model:
    return await check(host, CheckRequest.model_validate(request), notify)


async def _evaluate(host: Host, request: Any, notify: Notify) -> Model:
    return await evaluate(host, EvaluateRequest.model_validate(request), notify)


async def _profile(host: Host, request: Any, notify: Notify) -> Model:
    return await profile(host, ProfileRequest.model_validate(request), notify)


async def _sanitize(host: Host, request: Any, notify: Notify) -> Model:
    return await sanitize(host, SanitizeRequest.model_validate(request), notify)


async def _compare(host: Host, request: Any, notify: Notify) -> Model:
    return await compare(host, CompareRequest.model_validate(request), notify)


async def _doctor(host: Host, request: Any, notify: Notify) -> Model:
    chosen = None if isinstance(host.found, NoIsolationError) else host.found
    return await doctor.report(chosen, bool(request.get("thorough")))


OPERATIONS: dict[str, Operation] = {
    "trace": _trace,
    "host_rates": _host_rates,
    "check": _check,
    "evaluate": _evaluate,
    "compare": _compare,
    "profile": _profile,
    "sanitize": _sanitize,
    "doctor": _doctor,
}
