"""What a candidate's source already does, direction by direction. Read from its text, without comments; nothing is run.

It is evidence for planning and no more: a macro or a template may hide what a pattern would find.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hiera_mcp.model.space import Direction

CF, PAR, MEM = Direction.CONTROL_FLOW, Direction.PARALLELISM, Direction.MEMORY_TRANSACTIONS
REU, TC = Direction.REUSE_PIPELINING, Direction.TENSOR_CORE_INSTRUCTIONS

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_PYTHON_COMMENT = re.compile(r"#[^\n]*")

ASYNC = "asynchronous copies"


@dataclass(frozen=True)
class Means:
    """One thing that code does for a direction."""

    name: str
    direction: Direction
    platforms: tuple[str, ...]
    pattern: re.Pattern[str]
    for_kinds: tuple[str, ...] = ()
    """Kinds of operators for which it is of use; empty: all."""
    least_arch: int = 0
    """The first architecture that has it, as a number: 80 for sm_80."""


def _means(name: str, direction: Direction, platforms: str, pattern: str, kinds: str = "", arch: int = 0) -> Means:
    return Means(name, direction, tuple(platforms.split()), re.compile(pattern), tuple(kinds.split()), arch)


MEANS: tuple[Means, ...] = (
    _means("unrolled loops", CF, "cuda cpu", r"#\s*pragma\s+(?:GCC\s+)?unroll|_Pragma\(\"unroll"),
    _means("compile-time variants", CF, "cuda cpu", r"\btemplate\s*<|\bif\s+constexpr\b"),
    _means(
        "warp-level reductions",
        PAR,
        "cuda",
        r"__shfl\w*_sync|__reduce_\w+_sync|\b(?:Warp|Block)Reduce\b|\bcg::reduce\b",
        "reduction normalisation scan attention",
    ),
    _means("launch bounds", PAR, "cuda", r"__launch_bounds__"),
    _means("threads", PAR, "cpu", r"#\s*pragma\s+omp\s+(?:parallel|taskloop)|std::j?thread|pthread_create|std::async"),
    _means(
        "vector accesses",
        MEM,
        "cuda",
        r"\b(?:float|double|int|uint|ushort|short|char|uchar)[248]\b|\b(?:longlong2|(?:__)?half2|__nv_bfloat162)\b|\b(?:ld|st)\.global[\w.]*\.v[248]",
    ),
    _means("read-only or streaming accesses", MEM, "cuda", r"__restrict__|__ld(?:g|cs|cg|lu)\b|__stc[sgw]\b|\.nc\b"),
    _means(
        "padded or swizzled tiles", MEM, "cuda", r"__shared__[^;]*\+\s*\d+\s*\]|swizzle", "movement gemm conv attention"
    ),
    _means("pointers without aliases", MEM, "cpu", r"__restrict"),
    _means("aligned or streaming accesses", MEM, "cpu", r"\balignas\b|assume_aligned|\baligned\s*\(|_mm\d*_stream"),
    _means(
        "shared-memory tiles", REU, "cuda", r"__shared__", "gemm conv attention reduction normalisation scan movement"
    ),
    _means(
        ASYNC,
        REU,
        "cuda",
        r"\bcp\.async|__pipeline_memcpy_async|\bmemcpy_async\b|\bcuda::pipeline\b",
        "gemm conv attention",
        80,
    ),
    _means("blocked loops", REU, "cpu", r"for\s*\([^;{}]*;[^;{}]*;[^;{})]*\+=\s*[A-Za-z_]", "gemm conv attention"),
    _means(
        "Tensor Core instructions",
        TC,
        "cuda",
        r"\bw?mma(?:\.sync|_sync|::)|\bwgmma\b|\bmma_async\b",
        "gemm conv attention",
    ),
    _means("wgmma", TC, "cuda", r"\bwgmma\b", "gemm conv attention", 90),
    _means(
        "vector loops", TC, "cpu", r"#\s*pragma\s+omp[^\n]*\bsimd\b|ivdep|\b_mm\d*_\w+|\b__m(?:128|256|512)|vector_size"
    ),
)
"""Every means by name. Some go without saying for a good kernel, none is needed by all."""

WGMMA = re.compile(r"\bwgmma\b")
TMA = re.compile(r"\bcp\.async\.bulk|\bCUtensorMap\b|cuTensorMapEncode")
PERSISTENT = re.compile(r"\+=\s*(?:\(\s*\w+\s*\)\s*)?gridDim\.\w+\s*(?![\s*])")
"""A block goes on to another tile. A step of whole grids of threads (`gridDim.x * blockDim.x`) is another thing."""

LIBRARIES = re.compile(
    r"\b(?:cublas|cudnn|cusparse|cufft|cutensor)\w*\(|\bcblas_\w+\(|\bdnnl\b|\bcub::Device|\b(?:torch|F|at)[.:]+\w"
)


@dataclass(frozen=True)
class Reading:
    """What a source shows."""

    used: frozenset[str]
    """Names of means."""
    designs: tuple[str, ...]
    """What it is built on that needs few warps and blocks: they are no defect of it."""
    libraries: bool
    """Whether some of its work is done by calls of a library or of PyTorch."""


def read_sources(sources: Mapping[str, str]) -> Reading:
    """What all files of a candidate show together."""
    return _read(tuple(sorted(sources.items())))


@lru_cache(maxsize=64)
def _read(sources: tuple[tuple[str, str], ...]) -> Reading:
    text = "\n".join(plain(name, text) for name, text in sources)
    used = frozenset(means.name for means in MEANS if means.pattern.search(text))
    return Reading(
        used=used,
        designs=_designs(text, used),
        libraries=LIBRARIES.search(text) is not None,
    )


def _designs(text: str, used: frozenset[str]) -> tuple[str, ...]:
    found = {
        "wgmma": WGMMA.search(text),
        "TMA": TMA.search(text),
        "a persistent grid and asynchronous copies": ASYNC in used and PERSISTENT.search(text),
    }
    return tuple(name for name, seen in found.items() if seen)


def plain(name: str, text: str) -> str:
    """The text without comments. Strings stay: inline assembly is one."""
    return (_PYTHON_COMMENT if name.endswith(".py") else _COMMENT).sub(" ", text)
