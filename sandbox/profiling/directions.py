"""Signs → a score from 0 to 4 for each direction, with what speaks for and against it. Pure."""

from collections.abc import Iterator, Sequence

from hiera_mcp.model.profile import DirectionSigns, Launch
from hiera_mcp.model.space import Direction
from hiera_mcp.sandbox.profiling.call_signs import REDUNDANT, call_signs
from hiera_mcp.sandbox.profiling.facts import HIGH, Facts, TaskFacts
from hiera_mcp.sandbox.profiling.signs import CF, MEM, PAR, REU, SECTOR, TC, Sign, conflict_share, signs

AT_THE_FLOOR = 1.15
"""Below this multiple of the floor nothing is left to tune."""
AT_THE_DRAM_ROOF = 80.0
"""Per cent of peak; a plain streaming kernel reaches about 87."""
LITTLE = 0.25
"""A launch with a smaller share of the time counts at most `LITTLE_SCORE`."""
LITTLE_SCORE = 2


def directions(launches: Sequence[Launch], task: TaskFacts) -> tuple[DirectionSigns, ...]:
    """All five directions, greatest score first; empty when nothing was profiled."""
    if not launches:
        return ()
    stop = finished(launches, task)
    found = [_direction(direction, launches, task, stop) for direction in Direction]
    weight = {d.direction: _weight(d.direction, launches, task) for d in found}
    return tuple(sorted(found, key=lambda d: (-d.score, -weight[d.direction])))


def finished(launches: Sequence[Launch], task: TaskFacts) -> str:
    """Why nothing is left to tune; empty when something is."""
    ratio = task.floor_ratio
    if ratio is not None and ratio < AT_THE_FLOOR:
        return f"at {ratio:.2f} times the floor nothing is left to tune"
    if at_the_dram_roof(launches, task):
        return f"DRAM is {_longest(launches).value('dram_pct'):.0f} % busy with bytes that the task must move"
    return ""


def at_the_dram_roof(launches: Sequence[Launch], task: TaskFacts) -> bool:
    """Whether DRAM is busy, and with nothing but the task's own bytes."""
    busy = _longest(launches).value("dram_pct")
    ratio = task.moved_ratio
    return busy is not None and busy >= AT_THE_DRAM_ROOF and ratio is not None and ratio < REDUNDANT


def _direction(direction: Direction, launches: Sequence[Launch], task: TaskFacts, stop: str) -> DirectionSigns:
    found = sorted(_signs(direction, launches, task), key=lambda s: -s.score)
    against = [*([stop] if stop else []), *_against(direction, Facts(_longest(launches), task))]
    return DirectionSigns(
        direction=direction,
        score=0 if stop or not found else found[0].score,
        signs_for=tuple(dict.fromkeys(sign.text for sign in found)),
        signs_against=tuple(against),
    )


def _signs(direction: Direction, launches: Sequence[Launch], task: TaskFacts) -> Iterator[Sign]:
    yield from (sign for sign in call_signs(launches, task) if sign.direction is direction)
    for launch in launches:
        most = LITTLE_SCORE if launch.share < LITTLE else 4
        where = f" ({launch.kernel.partition('(')[0][:60]})" if len(launches) > 1 else ""
        for sign in signs(Facts(launch, task)):
            if sign.direction is direction:
                yield Sign(direction, min(sign.score, most), sign.text + where)


def _weight(direction: Direction, launches: Sequence[Launch], task: TaskFacts) -> int:
    """Breaks ties: all signs together."""
    return sum(sign.score for sign in _signs(direction, launches, task))


def _against(direction: Direction, f: Facts) -> Iterator[str]:
    readers = {CF: _control_flow, PAR: _parallelism, MEM: _memory, REU: _reuse, TC: _tensor_cores}
    yield from readers[direction](f)


def _control_flow(f: Facts) -> Iterator[str]:
    if f.above("threads_per_instruction", 31):
        yield f"{f.get('threads_per_instruction'):.1f} of 32 lanes work per instruction"


def _parallelism(f: Facts) -> Iterator[str]:
    if f.above("occupancy_pct", HIGH) and f.above("waves", 1):
        yield f"occupancy {f.get('occupancy_pct'):.0f} %, {f.get('waves'):.1f} waves"
    elif f.below("occupancy_pct", HIGH) and f.needs_few_warps:
        yield f"occupancy is {f.get('occupancy_pct'):.0f} %, as is meant with wgmma or TMA"
    elif f.below("occupancy_pct", HIGH) and not f.starved:
        yield f"occupancy is {f.get('occupancy_pct'):.0f} %, but a unit is busy all the same"


def _memory(f: Facts) -> Iterator[str]:
    if f.above("bytes_per_sector_load", 30):
        yield f"global loads use {f.get('bytes_per_sector_load'):.1f} of {SECTOR:.0f} bytes of a sector"
    share = conflict_share(f)
    if share is not None and share < 0.1:
        yield f"{share:.0%} bank conflicts"


def _reuse(f: Facts) -> Iterator[str]:
    ratio = f.task.moved_ratio
    if ratio is not None and ratio < REDUNDANT:
        yield f"{ratio:.2f} times the task's bytes go through DRAM"


def _tensor_cores(f: Facts) -> Iterator[str]:
    if not f.task.tensor_core_legal:
        yield f.task.tensor_core_reason or "Tensor Cores are not legal here"
    if f.above("tensor_pipe_pct", HIGH):
        yield f"Tensor Cores are {f.get('tensor_pipe_pct'):.0f} % busy already"


def _longest(launches: Sequence[Launch]) -> Launch:
    return max(launches, key=lambda launch: launch.share)
