"""Three clocks that must agree: what the runner claims, what the judge sees from outside, and the floor."""

import math
import time
from dataclasses import dataclass
from typing import Any

from hiera_mcp.sandbox.child import outside_clock
from hiera_mcp.sandbox.child.measure import CASE, Course, Samples
from hiera_mcp.sandbox.child.rehearsal import Rehearsal
from hiera_mcp.sandbox.child.timing import median
from hiera_mcp.sandbox.child.workbench import Workbench

LEAST_PAIRS, MOST_PAIRS = 3, 9
PAUSE_S = 0.3
"""After so many pairs without agreement; then as many are made again. What disturbs a host often lasts longer than they do."""
SHORT_BATCH_S, LONG_BATCH_S = 0.01, 0.05
"""Aimed lengths: so much shorter batch, and so much more in the longer one, that the protocol's noise is small beside it."""
MOST_CALLS = 4000
FRESH_S, LONG_CALL_S = 1e-3, 0.02
"""Aimed length of all calls of one request that each have inputs of their own: few long ones, which a busy host disturbs less.
Calls from the second length on are not made so."""
WARM_CALLS = 11
FIRST_CALLS, MORE_CALLS = 4, 8
"""So many calls tell what a call takes; and so many times more, until they take as long as the shorter batch. On a busy host a
request takes milliseconds: of few short calls it would tell the request's time, and batches would be as short as its noise."""
RELATIVE, ABSOLUTE_S = 0.10, 1e-6
"""Allowed disagreement of claim and slope (measured on an H200: about 1 %; on a busy 2-core host: a few per cent)."""
COLD_RELATIVE, COLD_ABSOLUTE_S = 0.25, 50e-6
"""Allowed disagreement for one cold call: request and answer cost more, and vary more, with cold caches."""
BELOW_FLOOR = {"cpu": 0.25, "cuda": 0.5}
"""A cold call faster than this share of the memory floor is not believed. Not 1: outputs may stay in the cache, and an
honest candidate may leave out bytes that the reference's arithmetic never needed (a triangle, a diagonal)."""


@dataclass(frozen=True)
class Slope:
    """Two batches of different size; seconds per additional call."""

    claimed: float
    outside: float
    noise: float
    """Difference of two requests that call nothing, spread over the additional calls."""

    @property
    def agrees(self) -> bool:
        """Whether the claim is not lower than allowed. One that is higher gains nothing."""
        return self.outside - self.claimed <= self.allowed

    @property
    def distance(self) -> float:
        return abs(self.claimed - self.outside)

    @property
    def allowed(self) -> float:
        """Allowed difference in seconds per call."""
        return RELATIVE * self.outside + ABSOLUTE_S + self.noise


def measure_slope(bench: Workbench, call_s: float) -> Slope:
    """The pair of batches in which claim and wall clock agree best.

    A neighbour on the machine delays answers and so can only spoil an agreement; a false claim is false in every pair.
    """
    call_s = max(call_s, _seen_from_outside(bench))
    short = min(MOST_CALLS // 4, max(1, math.ceil(SHORT_BATCH_S / max(call_s, 1e-7))))
    more = min(MOST_CALLS, max(1, math.ceil(LONG_BATCH_S / max(call_s, 1e-7))))
    noise = _empty_difference(bench) / more
    pairs = _pairs(bench, short, more, noise)
    if not any(p.agrees for p in pairs):
        time.sleep(PAUSE_S)
        pairs += _pairs(bench, short, more, noise)
    return min(pairs, key=lambda p: p.distance)


def _pairs(bench: Workbench, short: int, more: int, noise: float) -> list[Slope]:
    pairs: list[Slope] = []
    while len(pairs) < LEAST_PAIRS or (len(pairs) < MOST_PAIRS and not any(p.agrees for p in pairs)):
        pairs.append(_pair(bench, short, more, noise))
    return pairs


def fresh_time(course: Course, rehearsal: Rehearsal | None, samples: Samples) -> float:
    """Seconds that a call takes at least when each has inputs of its own, by the judge's clock alone.

    One request for several sets. Nothing that the candidate has a hand in is taken off: only what such a request cost before.
    Results that are kept from call to call, or left out, are wrong. A neighbour on the machine delays answers: the least of
    several requests counts, and the first one that bounds no claim ends it.

    Returns 0 where nothing was rehearsed, and for long calls, of which the clock around a single one tells enough.

    Raises:
        WrongOutput: the outputs are not right.
    """
    claimed_s = median(samples.candidate)
    if rehearsal is None or claimed_s > LONG_CALL_S:
        return 0.0
    count = min(rehearsal.sets, max(1, math.ceil(FRESH_S / max(claimed_s, 1e-7))))
    least = math.inf
    for _ in range(MOST_PAIRS):
        seconds = course.fresh_calls(count)
        least = min(least, max(0.0, seconds - rehearsal.cost(count)) / count)
        if least <= outside_clock.unraised(samples):
            break
    return least


@dataclass(frozen=True)
class MemoryFloor:
    """What moving the compulsory bytes takes on the device that runs the candidate."""

    seconds: float
    basis: str


def memory_floor(contract_floor: dict[str, Any], copy_bandwidth: float | None) -> MemoryFloor:
    """The contract's bytes at this device's measured copy bandwidth; at the contract's own where none was measured.

    A candidate may run on another GPU than its target's, whose floor says nothing then.
    """
    if copy_bandwidth is None:
        return MemoryFloor(contract_floor["memory_seconds"], contract_floor["basis"])
    nbytes = contract_floor["memory_seconds"] * contract_floor["bandwidth"]
    basis = f"{nbytes / 1e6:.4g} MB at {copy_bandwidth / 1e12:.3g} TB/s, the copy bandwidth measured on this GPU"
    return MemoryFloor(nbytes / copy_bandwidth, basis)


def _pair(bench: Workbench, short: int, more: int, noise: float) -> Slope:
    claimed_short, wall_short = bench.run(CASE, _sets(bench, short), "batch")
    claimed_long, wall_long = bench.run(CASE, _sets(bench, short + more), "batch")
    claimed, outside = claimed_long[0] - claimed_short[0], wall_long - wall_short
    return Slope(max(claimed, 0.0) / more, max(outside, 0.0) / more, noise)


def warm_time(bench: Workbench) -> float:
    """Median claim of single calls with a warm cache, in seconds."""
    return median(bench.run(CASE, _sets(bench, WARM_CALLS), "each")[0])


def _seen_from_outside(bench: Workbench) -> float:
    """Seconds per call that calls seem to take: a false claim must not make the batches endless."""
    count = FIRST_CALLS
    while True:
        _, seconds = bench.run(CASE, _sets(bench, count), "batch")
        if seconds >= SHORT_BATCH_S or count >= MOST_CALLS // 2:
            return seconds / count
        count = min(MOST_CALLS // 2, count * MORE_CALLS)


def _empty_difference(bench: Workbench) -> float:
    _, short = bench.run(CASE, [], "batch")
    _, long = bench.run(CASE, [], "batch")
    return abs(long - short)


def _sets(bench: Workbench, count: int) -> list[int]:
    return [n % min(2, bench.sets) for n in range(count)]


def disagreements(slope: Slope, samples: Samples, floor: MemoryFloor, device: str) -> list[str]:
    """What is not credible about the claims, with the numbers; empty when the clocks agree."""
    found: list[str] = []
    if not slope.agrees:
        found.append(
            f"the runner claims {_us(slope.claimed)} per call in batches, the judge's clock outside says "
            f"{_us(slope.outside)} (allowed difference {_us(slope.allowed)})"
        )
    found += _cold(samples)
    least = BELOW_FLOOR["cpu" if device == "cpu" else "cuda"] * floor.seconds
    claimed = median(samples.candidate)
    if claimed < least:
        found.append(
            f"a cold call claims {_us(claimed)}, less than {_us(least)}: moving the data alone takes "
            f"{_us(floor.seconds)} ({floor.basis})"
        )
    return found


def _cold(samples: Samples) -> list[str]:
    if samples.together:
        return outside_clock.series_implausible(samples)
    if not samples.empty:
        return []
    if samples.rehearsed:
        return outside_clock.implausible(samples)
    outside = min(samples.outside) - median(samples.empty) - samples.delivery  # the least disturbed call
    claimed = median(samples.candidate)
    if claimed >= outside * (1 - COLD_RELATIVE) - COLD_ABSOLUTE_S:
        return []
    text = f"the runner claims {_us(claimed)} for one cold call, the judge's clock outside says at least {_us(outside)} more "
    return [text + "than for a request that calls nothing"]


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} us"
