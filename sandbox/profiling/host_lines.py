"""Samples of a candidate's threads on `cpu` → the lines of its source that cost it, and the functions of others. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from hiera_mcp.model.profile import Launch, Metric, Profile, SourceLine
from hiera_mcp.model.work import HostSamples
from hiera_mcp.sandbox.profiling.host_code import Code, Place
from hiera_mcp.sandbox.profiling.lines import MOST_LINES, NO_STALL, source_lines
from hiera_mcp.sandbox.profiling.raw import Instruction, RawLaunch

LIBRARY = "case0.so"
"""The candidate's own code that no line of its files stands for: what the compiler added, templates of the system."""
NO_FILE = "generated code"
WORTH_TELLING = 0.05
_RUNNERS = ("python3", "libpython3", "_ctypes", "libffi", "[vdso]")
"""What calls a candidate with the C ABI, and looks at the clock; for a ModelNew the interpreter is a cost of its own."""


def trimmed(samples: HostSamples, is_python: bool) -> HostSamples:
    """Without what is the runner's own work."""
    if is_python:
        return samples
    others = tuple(o for o in samples.others if not o.library.startswith(_RUNNERS))
    return samples.model_copy(update={"others": others})


def instructions(code: Sequence[Code], place_of: Mapping[int, Place]) -> tuple[Instruction, ...]:
    """The candidate's machine code with its samples and lines."""
    return tuple(_instruction(c, place_of.get(c.address, ("", 0))) for c in code)


def _instruction(code: Code, place: Place) -> Instruction:
    stalls = {NO_STALL: float(code.samples)} if code.samples else {}
    return Instruction(offset=code.address, sass=code.text, file=place[0], line=place[1], stalls=stalls)


def elsewhere(samples: HostSamples, code: Sequence[Code], place_of: Mapping[int, Place]) -> Counter[tuple[str, str]]:
    """(library, function) → samples, of all that no line of the candidate's stands for."""
    found: Counter[tuple[str, str]] = Counter()
    for other in samples.others:
        found[other.library or NO_FILE, other.function] += other.samples
    for c in code:
        if c.address not in place_of:
            found[LIBRARY, c.function] += c.samples
    found[LIBRARY, ""] += own_samples(samples) - sum(c.samples for c in code)
    return +found


def own_samples(samples: HostSamples) -> int:
    """Those in the candidate's library."""
    return sum(n for _, n in samples.own)


def with_lines(
    profile: Profile,
    samples: HostSamples,
    code: Sequence[Code],
    place_of: Mapping[int, Place],
    sources: Mapping[str, str],
    missing: str = "",
) -> Profile:
    """The profile with the lines that cost the candidate, all of its calls taken as one launch.

    Args:
        missing: why no line of its own is known; empty when some are, or nothing was sampled there.
    """
    others, own = elsewhere(samples, code, place_of), instructions(code, place_of)
    total = own_samples(samples) + sum(o.samples for o in samples.others)
    rest = Instruction(offset=0, sass="", stalls={NO_STALL: float(total - sum(c.samples for c in code))})
    lines = [*source_lines([*own, rest], sources), *_others(others, total)]
    first = sorted(lines, key=lambda line: -line.samples)[:MOST_LINES]
    launch = Launch(kernel="the call", share=1.0, seconds=None, metrics=(), lines=tuple(first))
    return profile.model_copy(
        update={
            "launches": (launch,) if total else (),
            "metrics": (*profile.metrics, _outside(samples, total)),
            "summary": " ".join([profile.summary, *_in_words(launch, samples, total)]),
            "counters": f"{profile.counters} {_told(samples, total, missing)}",
        }
    )


def without_lines(profile: Profile, reason: str) -> Profile:
    """The profile, which says why it names no lines."""
    metric = Metric(name="outside_pct", value=None, unit="%", origin="counter", reason=reason)
    told = f"{profile.counters} No source lines: {reason}."
    return profile.model_copy(update={"metrics": (*profile.metrics, metric), "counters": told})


def raw_launch(found: Sequence[Instruction]) -> RawLaunch:
    """For the listing."""
    return RawLaunch(kernel=LIBRARY, metrics={}, instructions=tuple(found))


def _others(found: Counter[tuple[str, str]], total: int) -> Iterator[SourceLine]:
    for (library, function), samples in found.most_common(MOST_LINES):
        share = round(samples / total, 4)
        facts = {"file": library, "line": 0, "text": function, "samples": samples, "share": share}
        yield SourceLine.model_validate({**facts, "stall": "", "stall_share": 0.0, "instruction": ""})


def _outside(samples: HostSamples, total: int) -> Metric:
    outside = sum(o.samples for o in samples.others)
    value = round(100 * outside / total, 1) if total else None
    reason = "" if total else "nothing was sampled"
    return Metric(name="outside_pct", value=value, unit="%", origin="counter", reason=reason)


def _in_words(launch: Launch, samples: HostSamples, total: int) -> Iterator[str]:
    if launch.lines:
        first = launch.lines[0]
        function = "" if first.line or not first.text else f", {first.text[:60]}"
        yield f"Most samples: {first.where}{function} ({first.share:.0%})."
    libraries: Counter[str] = Counter()
    for other in samples.others:
        libraries[other.library or NO_FILE] += other.samples
    shares = [(name, n / total) for name, n in libraries.most_common(3) if n >= WORTH_TELLING * total > 0]
    if shares:
        named = ", ".join(f"{name} {share:.0%}" for name, share in shares)
        yield f"{libraries.total() / total:.0%} lies outside of its own code: {named}."


def _told(samples: HostSamples, total: int, missing: str) -> str:
    rest = f" None of its own: {missing}." if missing else ""
    cut = " (not of the end: a call took longer than before)" if samples.full else ""
    how = f"by stopping them ({samples.clock})" if samples.clock else "by the kernel's clock"
    return f"Lines: {total} samples of all threads in {samples.calls} further calls{cut}, {how}.{rest}"
