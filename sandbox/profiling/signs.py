"""What a launch says for each direction: one function per sign, each with the values it rests on. Pure.

Thresholds: NVIDIA's Compute Triage Guide and the rules that come with Nsight Compute; where neither has one it is ours.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hiera_mcp.model.space import Direction
from hiera_mcp.sandbox.profiling.facts import HIGH, Facts

CF, PAR, MEM = Direction.CONTROL_FLOW, Direction.PARALLELISM, Direction.MEMORY_TRANSACTIONS
REU, TC = Direction.REUSE_PIPELINING, Direction.TENSOR_CORE_INSTRUCTIONS

SECTOR = 32.0
"""Bytes; of L1, L2 and DRAM alike."""
FEWEST_WAVES = 0.45
"""A persistent grid has a block or two for each SM where up to two would fit; with fewer, SMs stay empty."""
_LIMITERS = {
    "blocks_by_registers": "registers",
    "blocks_by_shared_memory": "shared memory",
    "blocks_by_warps": "the size of its blocks",
    "blocks_by_slots": "the number of blocks an SM takes",
}


@dataclass(frozen=True)
class Sign:
    """One reason to take a direction."""

    direction: Direction
    score: int
    """1 (weak) to 4 (this is it)."""
    text: str


Reader = Callable[[Facts], Iterator[Sign]]


def few_warps(f: Facts) -> Iterator[Sign]:
    """Too few warps to hide the waiting, by occupancy or by a small grid."""
    occupancy, waves = f.get("occupancy_pct"), f.get("waves")
    if occupancy is None or occupancy >= HIGH or not f.starved:
        return
    if f.needs_few_warps and (waves is None or waves >= FEWEST_WAVES):
        return
    score = 4 if occupancy < 30 else 3
    if waves is not None and waves < 1:
        yield Sign(PAR, score, f"the grid fills {waves:.2f} of the places on the SMs: occupancy {occupancy:.0f} %")
    else:
        yield Sign(PAR, score, f"occupancy {occupancy:.0f} %, limited by {limiter(f)}, and the schedulers are starved")


def limiter(f: Facts) -> str:
    """Which resource lets the fewest blocks onto an SM."""
    known = {name: value for name in _LIMITERS if (value := f.get(name)) is not None}
    return _LIMITERS[min(known, key=lambda name: known[name])] if known else "something unknown"


def imbalance(f: Facts) -> Iterator[Sign]:
    """Some SMs work while others have ended: a tail, or blocks of unequal work."""
    most, mean, waves = f.get("sm_cycles_most"), f.get("sm_cycles"), f.get("waves")
    if most is None or not mean or most / mean < 1.2:
        return
    tail = f"; {waves:.2f} waves leave the last one nearly empty" if waves and waves > 1 and lost(waves) >= 0.2 else ""
    score = 4 if most / mean >= 1.5 else 3
    yield Sign(PAR, score, f"the busiest SM works {most / mean:.2f} times as long as the average{tail}")


def lost(waves: float) -> float:
    """Share of the SMs' places that stay empty because the last wave is not full."""
    return 1 - waves / math.ceil(waves)


def dependent_instructions(f: Facts) -> Iterator[Sign]:
    """Each instruction waits for the one before it, and no other warp steps in."""
    if f.stall("wait") >= 0.3 and f.starved:
        yield Sign(
            PAR, 3, f"{f.stall('wait'):.0%} of the waiting is for the previous instruction: too few independent ones"
        )


def atomics(f: Facts) -> Iterator[Sign]:
    """Atomic operations are a good part of what L2 has to do."""
    ours = ("l2_atomics", "l2_reductions")
    share = f.ratio(ours, (*ours, "l2_reads", "l2_writes"))
    if share is not None and share >= 0.2:
        yield Sign(PAR, 4, f"{share:.0%} of the sectors at L2 are atomics: reduce inside warps and blocks first")


def uncoalesced(f: Facts) -> Iterator[Sign]:
    """Lanes touch more sectors than their bytes need."""
    excess = sector_excess(f)
    if excess is None or excess < 0.1:
        return
    matters = f.above("memory_pct", 40) or f.stall("long_scoreboard") + f.stall("lg_throttle") >= 0.3
    beside_tma = f.above("tma_loads", 1)
    score = (4 if excess >= 0.5 else 3 if excess >= 0.33 else 2) if matters and not beside_tma else 1
    used = [f"{kind}s {value:.1f}" for kind in ("load", "store") if (value := f.get(f"bytes_per_sector_{kind}"))]
    words = f" ({', '.join(used)} of the {SECTOR:.0f} bytes of a sector)" if used else ""
    words += ", beside what TMA brings" * beside_tma
    yield Sign(MEM, score, f"{excess:.0%} of the global sectors are more than the bytes need{words}")


def sector_excess(f: Facts) -> float | None:
    """Share of the sectors that global accesses touch without need; None when there are none."""
    ratio = f.ratio(("global_sectors_ideal",), ("global_sectors",))
    return None if ratio is None else max(0.0, 1 - ratio)


def bank_conflicts(f: Facts) -> Iterator[Sign]:
    """Shared-memory accesses of a warp meet in one bank."""
    share = conflict_share(f)
    if share is not None and share >= 0.1:
        matters = f.above("shared_data_pct", 20) or f.stall("short_scoreboard") + f.stall("mio_throttle") >= 0.2
        score = (4 if share >= 0.5 else 3) if matters else 1
        yield Sign(MEM, score, f"{share:.0%} of the shared-memory wavefronts are bank conflicts")


def conflict_share(f: Facts) -> float | None:
    """Bank conflicts over wavefronts of shared memory; None when it uses none."""
    conflicts = ("bank_conflicts_load", "bank_conflicts_store")
    return f.ratio(conflicts, ("shared_wavefronts_load", "shared_wavefronts_store"))


def local_memory(f: Facts) -> Iterator[Sign]:
    """Registers were spilled, or an array is indexed at run time."""
    share = f.ratio(("local_loads", "local_stores"), ("instructions",))
    if share is not None and share >= 0.01:
        score = 4 if share >= 0.1 else 3
        yield Sign(
            MEM, score, f"{share:.0%} of the instructions go to local memory: spills, or an array indexed at run time"
        )


def narrow_accesses(f: Facts) -> Iterator[Sign]:
    """Most memory instructions move four bytes per lane although the memory path is what is waited for."""
    share = f.ratio(("memory_32b",), ("memory_32b", "memory_64b", "memory_128b"))
    waits = f.stall("lg_throttle") + f.stall("long_scoreboard") >= 0.3 and f.below("dram_pct", 80)
    if share is not None and share >= 0.7 and waits:
        yield Sign(MEM, 2, f"{share:.0%} of the memory instructions are 32 bits wide")


def exposed_latency(f: Facts) -> Iterator[Sign]:
    """Warps wait for global memory, and nothing is fetched ahead."""
    share = f.stall("long_scoreboard")
    if share < 0.3 or f.above("dram_pct", 80) or f.above("issue_active", 0.6):
        return
    if f.above("tma_loads", 1):
        yield Sign(REU, 1, f"{share:.0%} of the waiting is for global memory, as that of the warps which feed TMA")
        return
    tiles = (f.get("shared_static") or 0) + (f.get("shared_dynamic") or 0) > 0
    ahead = (f.get("async_copies") or 0) > 0
    score = 3 if tiles and not ahead and f.stall("barrier") > 0.05 else 2
    yield Sign(
        REU, score, f"{share:.0%} of the waiting is for global memory{', and no copy is asynchronous' * (not ahead)}"
    )


def barriers(f: Facts) -> Iterator[Sign]:
    """Warps wait for each other."""
    if f.stall("barrier") >= 0.3 and f.below("issue_active", 0.8):
        yield Sign(REU, 3, f"{f.stall('barrier'):.0%} of the waiting is at barriers: more stages, or smaller blocks")


def busy_shared_memory(f: Facts) -> Iterator[Sign]:
    """The path of L1 and shared memory is full without conflicts: keep more in registers."""
    if f.above("l1_data_pct", HIGH) and (conflict_share(f) or 0) < 0.1:
        yield Sign(REU, 2, f"the data path of L1 and shared memory is {f.get('l1_data_pct'):.0f} % busy")


def idle_tensor_cores(f: Facts) -> Iterator[Sign]:
    """A product on ordinary pipes although Tensor Cores are legal."""
    used = f.get("tensor_pipe_pct")
    if f.task.contraction_share < 0.2 or not f.task.tensor_core_legal or used is None:
        return
    if used < 5:
        yield Sign(
            TC, 4, f"Tensor Cores are legal and {used:.0f} % busy; the FMA pipe {f.get('fma_pipe_pct') or 0:.0f} %"
        )
    elif used < HIGH and f.get("wgmma_pct") == 0:
        yield Sign(TC, 2, f"Tensor Cores are {used:.0f} % busy, by mma.sync: wgmma feeds them better")
    elif used < HIGH:
        yield Sign(TC, 1, f"Tensor Cores are {used:.0f} % busy")


def busy_pipes(f: Facts) -> Iterator[Sign]:
    """An arithmetic pipe is the limit."""
    for name, what in (("fma_pipe_pct", "FMA"), ("fp64_pipe_pct", "FP64"), ("xu_pipe_pct", "special-function")):
        if f.above(name, HIGH):
            yield Sign(TC, 2, f"the {what} pipe is {f.get(name):.0f} % busy: fewer or faster instructions")


def divergence(f: Facts) -> Iterator[Sign]:
    """Lanes of a warp go different ways."""
    threads = f.get("threads_per_instruction")
    if threads is not None and threads < 24:
        yield Sign(CF, 4 if threads < 16 else 3, f"{threads:.1f} of 32 lanes work per instruction")


def branching(f: Facts) -> Iterator[Sign]:
    """Branches, or what goes with them, are many."""
    uniform, share = f.get("uniform_branches_pct"), f.ratio(("branches",), ("instructions",))
    if uniform is not None and 0 < uniform < 90:
        yield Sign(CF, 2, f"{uniform:.0f} % of the branches are uniform")
    if share is not None and share > 0.1:
        yield Sign(CF, 2 if f.above("issue_active", 0.5) else 1, f"{share:.0%} of the instructions are branches")
    if f.stall("no_instruction") >= 0.3:
        yield Sign(CF, 2, f"{f.stall('no_instruction'):.0%} of the waiting is for instructions: smaller code")


def index_arithmetic(f: Facts) -> Iterator[Sign]:
    """More integer than floating-point work, where instructions are what counts."""
    ratio = f.ratio(("integer",), ("fused_fp32", "fp32_additions", "fp32_products", "fused_fp64", "fused_fp16"))
    if ratio is not None and ratio > 1 and f.above("sm_pct", HIGH) and f.below("tensor_pipe_pct", 5):
        yield Sign(CF, 2, f"{ratio:.1f} integer instructions for each floating-point one")


READERS: tuple[Reader, ...] = (
    *(few_warps, imbalance, dependent_instructions, atomics),
    *(uncoalesced, bank_conflicts, local_memory, narrow_accesses),
    *(exposed_latency, barriers, busy_shared_memory),
    *(idle_tensor_cores, busy_pipes),
    *(divergence, branching, index_arithmetic),
)


def signs(f: Facts) -> tuple[Sign, ...]:
    """All that speaks for a direction. A sign whose metric is missing is not there."""
    return tuple(sign for reader in READERS for sign in reader(f))
