"""Static and derived evidence, and the launches that were profiled, joined into one judged profile. Pure."""

from collections.abc import Iterator, Sequence

from hiera_mcp.model.evaluation import Timing
from hiera_mcp.model.profile import Bottleneck, DirectionSigns, Launch, Metric, Profile
from hiera_mcp.model.work import ProfileRequest
from hiera_mcp.sandbox.profiling.bottleneck import bottleneck, roofline
from hiera_mcp.sandbox.profiling.directions import directions, finished
from hiera_mcp.sandbox.profiling.facts import TaskFacts, task_facts
from hiera_mcp.sandbox.profiling.nsight import MOST_LAUNCHES
from hiera_mcp.sandbox.profiling.pictures import seconds
from hiera_mcp.sandbox.profiling.rules import overrule

PREFIX = "ncu_"
"""Of the metrics of the longest launch, among those of the whole candidate."""
_UNITS: dict[Bottleneck, tuple[tuple[str, str], ...]] = {
    "memory": (("dram_pct", "DRAM"), ("l1_data_pct", "the data path of L1 and shared memory"), ("l2_pct", "L2")),
    "compute": (
        ("tensor_pipe_pct", "the Tensor Cores"),
        ("fma_pipe_pct", "the FMA pipe"),
        ("alu_pipe_pct", "the ALU pipe"),
        ("fp64_pipe_pct", "the FP64 pipe"),
        ("xu_pipe_pct", "the special-function pipe"),
        ("lsu_pipe_pct", "the load and store pipe"),
    ),
}
_NO_WAITING = ("selected", "not_selected")
"""States of a warp that issues, or could."""
_WORDS: dict[Bottleneck, str] = {
    "memory": "Bound by memory",
    "compute": "Bound by arithmetic",
    "latency": "Near no peak: it waits",
    "launch": "Bound by its launches",
    "unknown": "What bounds it is not known",
}


def judged(profile: Profile, request: ProfileRequest, launches: Sequence[Launch]) -> Profile:
    """The profile with all that follows from the counters; with none, only its place under the roofs is added."""
    timing = request.timing
    if not launches:
        place = roofline(request.contract, None if timing is None else timing.candidate.median, None)
        return profile.model_copy(update={"roofline": place})
    task = task_facts(request.contract, timing, launches, MOST_LAUNCHES)
    stop = finished(launches, task)
    found = directions(launches, task)
    bound = bottleneck(launches, task)
    return profile.model_copy(
        update={
            "bottleneck": bound,
            "summary": " ".join(_summary(bound, launches, task, found, timing, stop)),
            "metrics": (*profile.metrics, *flat(launches)),
            "launches": tuple(overrule(launch, task, stop) for launch in launches),
            "roofline": roofline(request.contract, task.seconds, task.moved_bytes),
            "directions": found,
        }
    )


def flat(launches: Sequence[Launch]) -> tuple[Metric, ...]:
    """Counters of the launch that took longest, each with `ncu_` before its name."""
    one = longest(launches)
    stalls = (Metric(name=f"stall_{s.reason}", value=s.cycles, unit="cycles", origin="counter") for s in one.stalls)
    return tuple(m.model_copy(update={"name": f"{PREFIX}{m.name}"}) for m in (*one.metrics, *stalls))


def longest(launches: Sequence[Launch]) -> Launch:
    return max(launches, key=lambda launch: launch.share)


def busiest(bound: Bottleneck, launch: Launch) -> str:
    """The unit that is nearest to its peak, in words; empty when the launch waits or nothing is known.

    Of the memory units it is the one that ncu took for `memory_pct`: L2 alone would often be called busier than DRAM.
    """
    known = [(value, what) for name, what in _UNITS.get(bound, ()) if (value := launch.value(name)) is not None]
    if not known:
        return ""
    total = launch.value("memory_pct") if bound == "memory" else None
    value, what = max(known) if total is None else min(known, key=lambda unit: abs(unit[0] - total))
    return f"{what} at {value:.0f} % of the peak"


def _summary(
    bound: Bottleneck,
    launches: Sequence[Launch],
    task: TaskFacts,
    found: Sequence[DirectionSigns],
    timing: Timing | None,
    stop: str,
) -> Iterator[str]:
    one = longest(launches)
    yield _time(task, timing)
    unit = busiest(bound, one)
    if unit or not stop:
        yield f"{_WORDS[bound]}{f': {unit}' * bool(unit)}."
    if len(launches) > 1:
        yield f"{len(launches)} launches; the longest, {_name(one)}, takes {one.share:.0%} of their time."
    if stop:
        yield f"{stop[0].upper()}{stop[1:]}."
        return
    yield from _where(one)
    if found and found[0].score:
        yield f"{found[0].direction.value} first: {found[0].signs_for[0]}."


def _where(one: Launch) -> Iterator[str]:
    stall = next((s for s in one.stalls if s.reason not in _NO_WAITING), None)
    if stall is not None and stall.share:
        yield f"Warps wait for {stall.reason} ({stall.share:.0%})."
    if one.lines:
        yield f"Most samples: {one.lines[0].file}:{one.lines[0].line} ({one.lines[0].share:.0%})."


def _time(task: TaskFacts, timing: Timing | None) -> str:
    if task.seconds is None or task.floor_ratio is None:
        return "Not timed."
    what = "per call" if timing is not None else "in its kernels"
    floor = "the floor" if task.floor_is_the_contracts else "what a plain copy of its bytes takes here"
    return f"{seconds(task.seconds)} {what}, {task.floor_ratio:.2f} times {floor} ({seconds(task.floor_seconds)})."


def _name(launch: Launch) -> str:
    return launch.kernel.partition("(")[0][:80]
