"""What a whole call says for each direction: its bytes, and the time between its kernels. Pure."""

from collections.abc import Iterator, Sequence

from hiera_mcp.model.profile import Launch
from hiera_mcp.sandbox.profiling.facts import Facts, TaskFacts
from hiera_mcp.sandbox.profiling.signs import PAR, REU, Sign, local_memory, sector_excess

REDUNDANT = 1.2
"""Multiple of the task's bytes from which on traffic counts as redundant; ours."""


def call_signs(launches: Sequence[Launch], task: TaskFacts) -> tuple[Sign, ...]:
    """Signs that no launch shows by itself."""
    return (*redundant_traffic(launches, task), *between_kernels(launches, task))


def redundant_traffic(launches: Sequence[Launch], task: TaskFacts) -> Iterator[Sign]:
    """More goes through DRAM than the task asks for, and neither half-used sectors nor spills are the cause.

    Caches are flushed before each launch: what one kernel leaves to the next would be in L2 where it fits.
    """
    ratio = task.moved_ratio
    if ratio is None or ratio < REDUNDANT or not any((x.value("dram_pct") or 0) >= 40 for x in launches):
        return
    facts = [Facts(launch, task) for launch in launches]
    if any((sector_excess(f) or 0) >= 0.33 or any(local_memory(f)) for f in facts):
        return
    score, text = (4 if ratio >= 1.6 else 3), f"{ratio:.2f} times the task's bytes go through DRAM"
    if len(launches) == 1:
        yield Sign(REU, score, f"{text}: keep on chip what is read again")
    elif fits_in_l2(launches, task):
        yield Sign(
            REU, 2, f"{text} when caches are flushed between kernels, though L2 could hold the excess: fuse them"
        )
    else:
        yield Sign(REU, score, f"{text}: fuse the kernels")


def fits_in_l2(launches: Sequence[Launch], task: TaskFacts) -> bool:
    """Whether all that is moved beyond the task's bytes would fit into L2; False when its size is not known."""
    size = launches[0].value("l2_bytes")
    return size is not None and task.moved_bytes is not None and task.moved_bytes - task.compulsory_bytes < size


def between_kernels(launches: Sequence[Launch], task: TaskFacts) -> Iterator[Sign]:
    """The device idles between the kernels of a call."""
    share = gaps(launches, task)
    if share is None or share < 0.3:
        return
    words = f"{share:.0%} of a call is outside its {len(launches)} kernels"
    if len(launches) > 1:
        yield Sign(REU, 4 if share >= 0.5 else 3, f"{words}: fuse them")
    else:
        yield Sign(PAR, 2, f"{share:.0%} of a call is outside its kernel, which is hardly more than a launch")


def gaps(launches: Sequence[Launch], task: TaskFacts) -> float | None:
    """Share of a call's measured time in which none of its kernels ran; None when it was not measured."""
    kernels = [launch.seconds for launch in launches]
    known = [s for s in kernels if s is not None]
    if not task.complete or task.seconds is None or len(known) < len(kernels):
        return None
    return max(0.0, 1 - sum(known) / task.seconds)
