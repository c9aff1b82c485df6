"""A server with a scripted executor: protocol, jobs and refusals can be tried without a compiler. The real executor is
used in tests/flow."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from hiera_mcp.deps import Deps, open_deps
from hiera_mcp.errors import SandboxError
from hiera_mcp.model.contract import (
    Case,
    Contract,
    Degeneracy,
    Features,
    Floor,
    Operator,
    Parameter,
    Task,
    TensorSpec,
    Tolerance,
)
from hiera_mcp.model.evaluation import (
    Build,
    Clocks,
    Device,
    Diagnostic,
    Evaluation,
    Interval,
    Margin,
    NotRun,
    SpaceFinding,
    Status,
    Timing,
    Verification,
)
from hiera_mcp.model.profile import Metric, Profile, Profiled
from hiera_mcp.model.sanitizer import Sanitized, SanitizeRequest, ToolResult
from hiera_mcp.model.work import (
    CheckReport,
    CheckRequest,
    CompareRequest,
    DoctorReport,
    EvaluateRequest,
    HostRates,
    PairReport,
    ProfileRequest,
)
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.server import create_server
from hiera_mcp.settings import Settings

Answer = dict[str, Any]

DEVICE = Device(name="scripted device", target="cpu", isolation="none")
BUILD = Build(ok=True, command="g++ candidate.cpp", seconds=0.1, log="compiler said nothing")


@pytest.fixture
def contract() -> Contract:
    """relu(x w) on the processor."""
    return Contract(
        task=Task(name="linear_relu", source="class Model: pass\n"),
        target="cpu",
        precision="float32",
        parameters=(
            Parameter(
                name="weight",
                shape=(4, 4),
                dtype="float32",
                path="fc.weight",
                role="weight",
                layout="[out, in], row-major",
                consumed_by="Linear fc",
            ),
        ),
        cases=(
            Case(
                name="case0",
                inputs=(TensorSpec(name="x", shape=(8, 4), dtype="float32"),),
                outputs=(TensorSpec(name="y", shape=(8, 4), dtype="float32"),),
                forward_order=("x",),
            ),
        ),
        tolerance=Tolerance(rtol=1e-4, atol=1e-4, reference_factor=4, allow_tf32=False),
        features=Features(
            operators=(Operator(name="aten.addmm", kind="gemm", count=1, flops=256, bytes=320, share=1.0),),
            flops=256,
            compulsory_bytes=320,
            unfused_bytes=576,
            arithmetic_intensity=0.8,
            launches=2,
            parameter_bytes=64,
            tensor_core_legal=False,
            tensor_core_reason="the target has none",
        ),
        floor=Floor(
            seconds=1e-6,
            bound="memory",
            memory_seconds=1e-6,
            math_seconds=1e-7,
            bandwidth=1e10,
            peak_flops=1e11,
            basis="test",
            arithmetic="320 B / 1e10 B/s",
        ),
        degeneracy=Degeneracy(measured=False, reason="test"),
    )


def passed(seconds: float = 1e-4, reference: float = 2e-4) -> Evaluation:
    """A verdict for a candidate that takes `seconds` a call."""

    def around(x: float) -> Interval:
        return Interval(median=x, low=x * 0.99, high=x * 1.01)

    timing = Timing(
        candidate=around(seconds),
        reference=around(reference),
        speedup=around(reference / seconds),
        pairs=10,
        cache="cold",
        clocks=Clocks(claimed=seconds, outside=seconds, floor=1e-6),
    )
    worst = Margin(output="y", trial="normal 0", error=0.25, reference_error=0.1)
    verification = Verification(trials=3, worst=worst, oracle="float64")
    return Evaluation(
        status=Status.PASSED,
        reason="right and timed",
        build=BUILD,
        verification=verification,
        timing=timing,
        device=DEVICE,
        log="candidate said hello",
    )


def compile_error() -> Evaluation:
    diagnostic = Diagnostic(severity="error", file="cpu_source.cpp", line=3, text="expected ';'")
    build = BUILD.model_copy(update={"ok": False, "diagnostics": (diagnostic,), "log": "cpu_source.cpp:3: error"})
    return Evaluation(status=Status.COMPILE_ERROR, reason="does not compile", build=build, device=DEVICE)


@dataclass
class ScriptedExecutor:
    """Does what a candidate's text says: `pass SECONDS`, `broken`, `outside`, `lost`, `bug`, `notrun`, `hang`."""

    started: list[str] = field(default_factory=list[str])
    stopped: list[str] = field(default_factory=list[str])
    release: anyio.Event = field(default_factory=anyio.Event)
    """Set it to let `hang` end as passed."""
    profiles: list[Profiled] = field(default_factory=list[Profiled])
    """What the next profiles find; without them a short one without counters."""
    sanitized: list[Sanitized] = field(default_factory=list[Sanitized])
    """What compute-sanitizer says next; without them, that there is nothing to look at."""
    looks_on: anyio.Event | None = None
    """Where there is one, compute-sanitizer says nothing before it is set."""
    doctor_report: DoctorReport = field(
        default_factory=lambda: DoctorReport(
            isolation=(), chosen=None, targets=(), gpus=(), tools={}, advice=("nothing to do",)
        )
    )

    async def host_rates(self, notify: Notify) -> HostRates:
        return HostRates(bandwidth=((1 << 20, 1e10),), flops={"fp32": 1e11, "fp64": 5e10})

    async def trace(self, request: Any, notify: Notify) -> Any:
        raise SandboxError("The scripted executor cannot trace.")

    async def check(self, request: CheckRequest, notify: Notify) -> CheckReport:
        evaluation = await self._script(request, notify)
        build = evaluation.build or BUILD
        findings = evaluation.space_findings if isinstance(evaluation, Evaluation) else ()
        said = ("the binary says this",)
        return CheckReport(build=build, space_findings=findings, instruction_mix={"fma": 3}, notes=said, device=DEVICE)

    async def evaluate(self, request: EvaluateRequest, notify: Notify) -> Evaluation | NotRun:
        return await self._script(request, notify)

    async def compare(self, request: CompareRequest, notify: Notify) -> PairReport:
        """By the seconds that their texts name, to a thousandth; a text that names none stands for a millisecond."""
        texts = (" ".join(sources.values()) for sources in (request.sources, request.other.sources))
        this, other = (float([*text.split(), "1e-3"][1]) for text in texts)
        self.started.append(f"compare {this:g} with {other:g}")
        ratio = other / this
        return PairReport(ratio=Interval(median=ratio, low=ratio * 0.999, high=ratio * 1.001), rounds=11)

    async def profile(self, request: ProfileRequest, notify: Notify) -> Profiled:
        if self.profiles:
            return self.profiles.pop(0)
        metric = Metric(name="spill_bytes", value=None, unit="B", origin="static", reason="not told here")
        found = Profile(bottleneck="memory", summary="Moves too much.", metrics=(metric,), floor_ratio=100.0)
        return Profiled(profile=found)

    async def sanitize(self, request: SanitizeRequest, notify: Notify) -> Sanitized:
        self.started.append(f"sanitize {' '.join(request.sources.values())}")
        if self.looks_on is not None:
            await self.looks_on.wait()
        if self.sanitized:
            return self.sanitized.pop(0)
        return Sanitized(results=tuple(ToolResult(tool=tool, status="cpu") for tool in request.tools))

    async def doctor(self, thorough: bool = False) -> DoctorReport:
        return self.doctor_report

    async def close(self) -> None:
        self.stopped.append("closed")

    async def _script(self, request: CheckRequest, notify: Notify) -> Evaluation | NotRun:
        text = " ".join(request.sources.values())
        word, _, rest = text.partition(" ")
        self.started.append(text)
        await notify(f"doing {text}", 0.5)
        match word:
            case "pass":
                return passed(float(rest))
            case "broken":
                return compile_error()
            case "outside":
                finding = SpaceFinding(evidence="include", what="cblas.h", smallest_space="cpp_libraries")
                return Evaluation(status=Status.INVALID_SPACE, reason="cblas.h", build=BUILD, space_findings=(finding,))
            case "lost":
                raise SandboxError("The judge was lost.", todo="Submit it again.")
            case "bug":
                raise RuntimeError("secret detail")
            case "notrun":
                return NotRun(reason="no GPU here", build=BUILD)
            case _:
                return await self._hang(text)

    async def _hang(self, text: str) -> Evaluation:
        try:
            await self.release.wait()
        except anyio.get_cancelled_exc_class():
            self.stopped.append(text)
            raise
        return passed()


@dataclass
class Bench:
    """A server under test, with what its tools use."""

    settings: Settings
    executor: ScriptedExecutor
    contract: Contract
    deps: Deps | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Deps]:
        async with open_deps(self.settings, self.executor) as deps:
            self.deps = deps
            await deps.database(lambda s: s.put_contract(self.contract, {"contract.h": "// header\n"}))
            yield deps

    def connect(self, mode: str = "auto") -> AbstractAsyncContextManager[Client]:
        return Client(create_server(self.open), mode=mode)  # pyright: ignore[reportArgumentType]

    @asynccontextmanager
    async def session(self, mode: str = "auto") -> AsyncGenerator["Caller"]:
        """A connected caller. Not a fixture: pytest would enter and leave it in different tasks."""
        async with self.connect(mode) as client:
            yield Caller(client, self.contract.id)


class Caller:
    """Calls tools and hands back what an agent reads."""

    def __init__(self, client: Client, contract_id: str) -> None:
        self.client = client
        self.contract_id = contract_id

    async def __call__(self, tool: str, **arguments: Any) -> Answer:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        assert result.structured_content is not None
        return result.structured_content

    async def error(self, tool: str, **arguments: Any) -> str:
        """The text of an error result."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        return str(getattr(result.content[0], "text", ""))

    async def planned_run(self, **budget: Any) -> str:
        """A run with space, direction and strategy recorded; returns its id."""
        run = await self("hiera_run_start", contract_id=self.contract_id, **budget)
        await self.plan(run["run_id"])
        return run["run_id"]

    async def settled(self, run_id: str) -> Answer:
        """The status of a run once none of its work is open."""
        while jobs := (status := await self("hiera_run_status", run_id=run_id))["open_jobs"]:
            await self("hiera_job", job_id=jobs[0]["job_id"])
        return status

    async def plan(self, run_id: str) -> None:
        for kind in ("space", "direction", "strategy"):
            await self(f"hiera_plan_{kind}", run_id=run_id, choice="recommended")

    async def evaluate(self, run_id: str, *texts: str, **more: Any) -> Answer:
        """Evaluate candidates c0, c1, … with these texts."""
        return await self("hiera_candidates_evaluate", run_id=run_id, candidates=batch(*texts), **more)


def batch(*texts: str, prefix: str = "c") -> list[Answer]:
    return [{"name": f"{prefix}{i}", "sources": {"cpu_source.cpp": text}} for i, text in enumerate(texts)]


@pytest.fixture
def candidates() -> Callable[..., list[Answer]]:
    """Builds the `candidates` argument from texts."""
    return batch


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    """Both eras of the protocol: 2026-07-28 and the handshake versions."""
    return request.param


@pytest.fixture
def bench(tmp_path: Path, contract: Contract) -> Bench:
    """Not started yet: `async with bench.session() as call`."""
    return Bench(Settings(data_dir=tmp_path / "data"), ScriptedExecutor(), contract)
