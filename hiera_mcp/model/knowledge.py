"""Expert knowledge as data: an entry, the conditions under which it applies, and how well it matched.

A condition names a *signal*: a value that the planner reads from the contract, the host, the run or a profile. `SIGNALS`
is the whole vocabulary, shared by knowledge entries (their signatures) and rubrics (what a criterion reads).
"""

import re
from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Literal, Self

from pydantic import Field, model_validator

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.space import Direction, Space, spaces_of

SignalValue = float | str | bool | None

SIGNALS: dict[str, str] = {
    # the workload, from the contract
    "platform": "cpu or cuda",
    "precision": "the contract's precision",
    "gemm_share": "share of the reference's estimated time in matrix products, 0 to 1",
    "conv_share": "the same for convolutions",
    "attention_share": "the same for attention",
    "reduction_share": "the same for reductions and pooling",
    "normalisation_share": "the same for normalisations and softmax",
    "elementwise_share": "the same for elementwise operators",
    "movement_share": "the same for copies, transposes, gathers",
    "scan_share": "the same for prefix sums",
    "other_share": "the same for everything else",
    "contraction_share": "gemm + conv + attention",
    "streaming_share": "reduction + normalisation + elementwise + movement + scan",
    "operators": "number of operator calls in the reference",
    "launches": "operators that launch at least one kernel in eager mode",
    "parameters": "number of parameters and buffers",
    "arithmetic_intensity": "FLOP per compulsory byte",
    "intensity_over_ridge": "arithmetic intensity / (peak FLOP/s / bandwidth); above 1 the floor is arithmetic",
    "floor_bound": "memory or math",
    "floor_seconds": "the contract's floor, seconds per call",
    "compulsory_bytes": "bytes that a fully fused kernel must move",
    "fusion_ratio": "bytes moved operator by operator / compulsory bytes",
    "footprint_over_cache": "compulsory bytes / L2 size of the GPU",
    "fusable_share": "share of the reference's estimated time in operators that can be fused with others",
    "library_share": "share of it in operators that some library of the target has, installed or not",
    "depth": "operators on the longest path of dependent ones",
    "fused_depth": "kernels on that path once each chain of operators is one kernel; an estimate, at least 1",
    "longest_reduction": "elements that go into one result of the longest reduction, normalisation or scan; 0 without one",
    "tensor_core_legal": "whether precision and operators admit Tensor Cores",
    # the host
    "libraries_installed": "whether a maths library of the target is installed",
    "contraction_library": "whether an installed library covers the heaviest kind of contraction",
    # the current parent, from its evaluation and its binary
    "speedup": "median speed-up of the best candidate over eager PyTorch",
    "floor_ratio": "time of the best candidate / floor",
    "reference_floor_ratio": "time of eager PyTorch, which calls tuned libraries, / floor",
    "registers": "largest register count per thread",
    "spill_bytes": "largest spill traffic of a kernel, bytes per thread",
    "shared_bytes": "largest static shared memory per block",
    "occupancy": "theoretical occupancy of the least occupied kernel at its best block size, per cent",
    "occupancy_limiter": "what limits it: registers, shared_memory, threads, blocks, none",
    "bottleneck": "memory, compute, latency, launch or unknown",
    "tensor_instructions": "Tensor Core instructions in the binary",
    "async_copies": "asynchronous copies to shared memory (cp.async, TMA) in the binary",
    "wide_load_share": "share of loads that are 128 bits (cuda) or vectors (cpu)",
    "memory_share": "loads and stores / all instructions",
    "branch_share": "branches / all instructions",
    "barrier_share": "barriers / all instructions",
    "atomic_share": "atomics / all instructions",
    "special_share": "special-function instructions / all instructions",
    # hardware counters of the parent, where a profiler reads them
    "conflict_share": "shared-memory bank conflicts / wavefronts",
    "dram_pct": "DRAM throughput, per cent of peak",
    "l2_hit": "L2 hit rate, per cent",
    "bytes_per_sector": "useful bytes of each 32-byte sector that global loads fetch",
    "waves": "waves of blocks per multiprocessor",
    "issue": "issue slot use, 0 to 1",
    "active_threads": "active threads per warp instruction, of 32",
    "long_scoreboard": "warps waiting for global memory per issued instruction",
    "barrier_stall": "warps waiting at barriers per issued instruction",
    "pipe_fma": "FMA pipe use, per cent",
    "pipe_tensor": "Tensor Core pipe use, per cent",
}
"""Every signal by name, with its meaning. Counter names follow the aliases of docs/planning.md."""

Comparator = Literal[">", ">=", "<", "<=", "==", "!="]


_ORDER: dict[str, Callable[[float, float], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}


class Condition(Model):
    """One comparison of a signal with a value."""

    signal: Text
    op: Comparator
    value: float | str | bool

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.signal not in SIGNALS:
            raise ValueError(f"unknown signal {self.signal!r}; valid: {', '.join(SIGNALS)}")
        if not isinstance(self.value, int | float) and self.op not in ("==", "!="):
            raise ValueError(f"{self.op} needs a number, not {self.value!r}")
        return self

    def holds(self, signals: Mapping[str, SignalValue]) -> bool | None:
        """Whether it holds; None when the signal is missing."""
        seen = signals.get(self.signal)
        if seen is None:
            return None
        if self.op in ("==", "!="):
            return (seen == self.value) is (self.op == "==")
        if isinstance(seen, str) or isinstance(self.value, str):
            return None
        return _ORDER[self.op](float(seen), float(self.value))

    def __str__(self) -> str:
        value = f"{self.value:g}" if isinstance(self.value, float) else str(self.value).lower()
        return f"{self.signal} {self.op} {value}"


_ARCH = re.compile(r"^sm_(\d+)([af]?)(\+?)$")


def arch_matches(pattern: str, arch: str) -> bool:
    """Whether `arch` (`cpu`, `sm_90a`, …) lies in `pattern` (`cpu`, `cuda`, `sm_80+`, `sm_90a`, …)."""
    if pattern == "cuda":
        return arch.startswith("sm_")
    wanted, given = _ARCH.match(pattern), _ARCH.match(arch)
    if wanted is None or given is None:
        return pattern == arch
    if wanted[3]:
        return int(given[1]) >= int(wanted[1])
    if wanted[2]:  # instructions of an `a` target exist on that target alone
        return pattern == arch
    return wanted[1] == given[1]


class Reference(Model):
    """Where a statement comes from."""

    title: Text
    url: Text


class Entry(Model):
    """One technique, with the situation it is for. One Markdown file with YAML front matter."""

    id: Text
    """Its slug: lower-case words joined by hyphens; also the file's name."""
    title: Text
    direction: Direction | None
    """Null for an entry that is about a space: which library to use and how."""
    spaces: tuple[Space, ...] = Field(min_length=1)
    """The smallest space per platform in which it may be used; larger spaces are implied."""
    archs: tuple[Text, ...] = Field(min_length=1)
    """`cpu`, `cuda` (any), `sm_80` or `sm_90a` (exactly), `sm_80+` (that one and later)."""
    operators: tuple[Text, ...] = Field(min_length=1)
    """Operator kinds it is for, or `any`."""
    keywords: tuple[Text, ...] = ()
    """Names under which people look for it: PyTorch's operators, networks, instructions."""
    signature: tuple[Condition, ...] = Field(min_length=1)
    """What speaks for it; each condition that holds raises its rank."""
    steps: tuple[Text, ...] = Field(min_length=1)
    constraints: tuple[Text, ...] = ()
    pitfalls: tuple[Text, ...] = ()
    parameters: dict[str, str] = Field(default_factory=dict)
    """Numbers to choose, with a sensible range."""
    must_move: Text
    """The signal that moves when it works, or `time`."""
    expected: Text
    """Direction and size of the effect, and how it is known."""
    cost: Literal["low", "medium", "high"]
    """Effort and risk."""
    libraries: tuple[Text, ...] = ()
    """Libraries of which it needs one, by the names that the host's search reports; empty when it needs none."""
    sources: tuple[Reference, ...] = Field(min_length=1)
    overrides: bool = False
    """Of an entry in a user's folder: it takes the place of the shipped one of the same id."""
    body: str = ""
    """The text below the front matter."""

    @property
    def kind(self) -> Literal["library", "technique"]:
        return "library" if self.direction is None else "technique"

    def allows_space(self, space: Space) -> bool:
        """Whether it may be used in `space`: one of its spaces is that one or is nested in it."""
        for nested in (spaces_of("cpu"), spaces_of("cuda:sm_80")):
            if space in nested:
                return any(s in nested[: nested.index(space) + 1] for s in self.spaces)
        return False

    def allows_arch(self, arch: str) -> bool:
        """Whether it is legal on `arch`: `cpu`, or an architecture such as `sm_90a`."""
        return any(arch_matches(pattern, arch) for pattern in self.archs)


class Match(Model):
    """An entry and how well it fits a situation."""

    entry: Entry
    score: float
    """Higher is better; see KnowledgeBase.matching."""
    why: Text
    """The conditions that held, failed or could not be read."""
