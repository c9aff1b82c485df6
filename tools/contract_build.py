"""hiera_contract_build: a PyTorch reference → a contract."""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from hiera_mcp.contracts.adapter import adapt
from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.contracts.build import build_contract, cpu_peaks
from hiera_mcp.contracts.tolerance import check_comparison, given_tolerance
from hiera_mcp.deps import Deps
from hiera_mcp.errors import RequestError
from hiera_mcp.knowledge_base import hardware
from hiera_mcp.machine import gpu_of, known_targets
from hiera_mcp.model.base import digest
from hiera_mcp.model.contract import Contract, Precision, Task
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.run import JobState
from hiera_mcp.model.space import Target, is_cpu
from hiera_mcp.model.switches import switches_of
from hiera_mcp.model.work import HostRates, Trace, TraceRequest
from hiera_mcp.planning.next_step import after_contract
from hiera_mcp.sandbox import devices
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.tools.base import DEFAULT_WAIT_S, ENSURES, Ctx, LongResult, Tool, WaitS, deps_of, finish, unfinished
from hiera_mcp.tools.contract_view import bare_view, contract_view
from hiera_mcp.tools.views import ContractView

MAX_SOURCE = 1 << 20
"""Bytes of a reference file."""
AUTO = "auto"
MAX_CASES = 16
IDENTIFIER = r"^[A-Za-z_]\w*$"
Case = Annotated[str, Field(max_length=2000)]
INPUTS = (
    "Example inputs of function, one text per case, unless the file has get_inputs() or get_cases(): "
    "`small = x: float32[64, 96], index: int64[64] < 96, alpha: 0.5`."
)
COMPARE = "A function of the file that judges: NAME(outputs, expected), lists of tensors -> error / limit, or a bool."


class ContractResult(LongResult):
    """Null contract: not done yet."""

    contract: ContractView | None = None


async def hiera_contract_build(
    ctx: Ctx,
    source: Annotated[
        str | None, Field(max_length=MAX_SOURCE, description="Text of a KernelBench-format file.")
    ] = None,
    path: Annotated[str | None, Field(description="Instead of source: that file on the server's host.")] = None,
    name: Annotated[str | None, Field(min_length=1, max_length=100, description="Name of the task.")] = None,
    target: Annotated[
        str, Field(description="cpu, cuda:sm_80, cuda:sm_90a, …; auto: the GPU of this host, else cpu.")
    ] = AUTO,
    precision: Precision = "float32",
    function: Annotated[
        str | None, Field(pattern=IDENTIFIER, description="Instead of Model: a function of the file.")
    ] = None,
    inputs: Annotated[list[Case] | None, Field(max_length=MAX_CASES, description=INPUTS)] = None,
    rtol: Annotated[float | None, Field(ge=0, description="Own tolerance: relative.")] = None,
    atol: Annotated[float | None, Field(ge=0, description="Own tolerance: times rms.")] = None,
    compare: Annotated[str | None, Field(pattern=IDENTIFIER, description=COMPARE)] = None,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> ContractResult:
    """Turn a PyTorch reference into a contract: the specification that candidates are written and judged against.

    Use it first. The reference defines class Model(nn.Module), get_inputs() and get_init_inputs() (KernelBench format);
    or, with `function`, a plain function; it runs in the sandbox. Pass exactly one of source and path. Returns contract_id (permanent), the structs and
    prototypes to implement, parameters, cases with shapes, workload features, the floor (least possible time),
    tolerance, warnings, and the addresses of all contract files, among them a compiling skeleton.
    A reference that cannot become a contract is an error that says what to change. Next: hiera_run_start.
    """
    deps = deps_of(ctx)
    task = adapted(await anyio.to_thread.run_sync(read_task, source, path, name), function, inputs)
    if compare:
        check_comparison(task.source, compare)
    target = await anyio.to_thread.run_sync(resolve_target, target)
    order = _Order(task, target, precision, rtol, atol, compare)
    job = await deps.jobs.submit("contract_build", partial(_build, deps, order), request=order.as_json())
    job = await finish(ctx, job, wait_s)
    if job.state is not JobState.DONE:
        return ContractResult(state=job.state, job_id=job.id, next_step=unfinished(job, "call this tool again"))
    result: Any = job.result
    contract = ContractView.model_validate(result["contract"])
    step = after_contract(contract.contract_id)
    return ContractResult(state=job.state, job_id=job.id, contract=contract, next_step=step)


@dataclass(frozen=True)
class _Order:
    task: Task
    target: Target
    precision: Precision
    rtol: float | None = None
    atol: float | None = None
    compare: str | None = None

    def as_json(self) -> JsonValue:
        return {"task": self.task.name, "target": self.target, "precision": self.precision}


def adapted(task: Task, function: str | None, inputs: Sequence[str] | None) -> Task:
    """The task itself, or the one that a function of its file makes.

    Raises:
        RequestError, TaskError: see `contracts.adapter.adapt`.
    """
    if function is None and inputs:
        raise RequestError("`inputs` belong to a `function`.", todo="A Model draws its own in get_inputs().")
    if function is None:
        return task
    return task.model_copy(update={"source": adapt(task.source, function, inputs or ())})


def read_task(source: str | None, path: str | None, name: str | None) -> Task:
    """The task that the arguments describe.

    Raises:
        RequestError: not exactly one of source and path, or the file cannot be used.
    """
    if (source is None) == (path is None):
        raise RequestError("Pass exactly one of `source` (the text) and `path` (a file on the server's host).")
    if path is not None:
        source = _read(_expanded(path))
        name = name or Path(path).stem
    assert source is not None
    if not source.strip():
        raise RequestError("The reference is empty.", todo="Pass a file with Model, get_inputs and get_init_inputs.")
    return Task(name=name or f"task_{digest(source, 8)}", source=source)


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # `~name` of a user who does not exist
        raise RequestError(f"`{path}`: {error}", todo="Pass the whole path on the server's host.") from error


def _read(path: Path) -> str:
    if not path.is_absolute():
        raise RequestError(f"`{path}` is not an absolute path.", todo="Pass the whole path on the server's host.")
    if path.suffix != ".py":  # errors quote the file, so that nothing else on the host may be named here
        raise RequestError(f"`{path}` does not end in .py.", todo="A reference is a Python file.")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not block the open
        with os.fdopen(fd, "rb") as file:
            _check_regular(path, fd)
            data = file.read(MAX_SOURCE + 1)
    except OSError as error:
        raise RequestError(
            f"{path} cannot be read: {error.strerror}.", todo="Check it on the server's host."
        ) from error
    if len(data) > MAX_SOURCE:
        raise RequestError(f"{path} is larger than {MAX_SOURCE} bytes.", todo="A reference is a short Python file.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RequestError(f"{path} is not UTF-8 text.", todo="A reference is a Python file.") from error


def _check_regular(path: Path, fd: int) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise RequestError(f"{path} is not a regular file.", todo="Pass the path of a Python file.")


def resolve_target(target: str) -> Target:
    """The target that was asked for; `auto` is this host's GPU, else cpu.

    Raises:
        RequestError: there is no such target, or no hardware table has it.
    """
    if target == AUTO:
        return devices.best_target()
    known = known_targets()
    try:
        TypeAdapter(Target).validate_python(target)
    except ValidationError as error:
        raise RequestError(f"`{target}` is not a target.", valid=[AUTO, *known]) from error
    if target not in known:
        raise RequestError(f"No hardware table has the target `{target}`.", valid=[AUTO, *known])
    return target


async def _build(deps: Deps, order: _Order, notify: Notify, _: object) -> JsonValue:
    rates = await deps.executor.host_rates(notify)
    request = TraceRequest(source=order.task.source, name=order.task.name, precision=order.precision, rates=rates)
    trace = await deps.executor.trace(request, notify)
    await notify("building the contract", 0.9)
    contract, files = await anyio.to_thread.run_sync(_contract, order, trace, rates)
    await deps.database(lambda s: s.put_contract(contract, files))
    view = contract_view(contract, sorted(files))
    shown = view if switches_of(deps.settings.plan).contract_files else bare_view(view)
    return {"contract": shown.model_dump(mode="json")}


def _contract(order: _Order, trace: Trace, rates: HostRates) -> tuple[Contract, dict[str, str]]:
    device, peaks, memory = _machine(order.target, trace, rates)
    others = {gpu.name: hardware.peaks(gpu) for gpu in hardware.gpus()}
    built = build_contract(
        order.task, order.target, order.precision, trace, peaks, memory, device=device, others=others
    )
    tolerance = given_tolerance(built.tolerance, order.rtol, order.atol, order.compare)
    contract = built.model_copy(update={"tolerance": tolerance})
    return contract, render_files(contract)


def _machine(target: Target, trace: Trace, rates: HostRates) -> tuple[str, Peaks, int]:
    """Name and peaks of the target's device, and bytes of its memory."""
    if is_cpu(target):
        return "cpu", cpu_peaks(trace, rates), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    gpu = gpu_of(target)
    return gpu.name, hardware.peaks(gpu), gpu.memory_bytes


TOOL = Tool(hiera_contract_build, "Build a contract", ENSURES)
