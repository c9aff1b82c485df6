"""Read a built candidate's hardware counters: Nsight Compute around a fresh runner, inside its box, for one call."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from hiera_mcp.errors import SandboxError
from hiera_mcp.model.profile import CounterStatus
from hiera_mcp.model.work import HostCounts, HostSamples, JudgeReport
from hiera_mcp.sandbox.launcher.judging import Ended, Job, run
from hiera_mcp.sandbox.launcher.reports import read
from hiera_mcp.sandbox.launcher.verdict import tail
from hiera_mcp.sandbox.profiling import nsight
from hiera_mcp.sandbox.profiling.failures import MISSING, NOT_READ, TIMEOUT, failure
from hiera_mcp.sandbox.profiling.launches import seconds_of
from hiera_mcp.sandbox.profiling.raw import RawLaunch


@dataclass(frozen=True)
class CountedOnHost:
    """What the runner says of the processor."""

    counts: HostCounts
    samples: HostSamples | None
    reason: str
    """Why there are no samples; empty when there are some."""


@dataclass(frozen=True)
class Counted:
    """What was read, or why nothing was."""

    status: CounterStatus
    note: str
    """For the reader of the profile: of what the counters are, or what to do."""
    launches: tuple[RawLaunch, ...] = ()
    tool: str = ""
    report: bytes = b""
    """Nsight Compute's own file, where there is one."""


async def count(job: Job) -> Counted:
    """The counters of one call on the job's GPU. A failure becomes the note: the rest of a profile stands without them."""
    program = nsight.find()
    if program is None:
        return Counted("missing", MISSING)
    try:
        ended = await run(replace(job, ncu=program))
    except SandboxError as e:
        return Counted("failed", f"{NOT_READ}: {e}")
    if not ended.ncu_report:
        return without_report(ended)
    found = await read(job.host, program, ended.ncu_report)
    tool = f"Nsight Compute {nsight.version(program)}, read by {found.by or 'nobody'}"
    if not found.launches:
        note = f"{NOT_READ}: the report of {program} cannot be read. Install the `ncu-report` package of its version."
        return Counted("mismatch", note, tool=tool, report=ended.ncu_report)
    return Counted("read", describe(found.launches), found.launches, tool, ended.ncu_report)


async def count_on_host(job: Job) -> CountedOnHost | str:
    """What one call costs the processor and where further ones spend their time, or why nothing is known."""
    try:
        ended = await run(replace(job, counts=True))
    except SandboxError as e:
        return f"{NOT_READ}: {e}"
    if ended.report.host_counts is None:
        return f"{NOT_READ}: {ended.deadline or ended.report.reason}"
    try:
        counts = HostCounts.model_validate(ended.report.host_counts)
    except ValidationError:
        return f"{NOT_READ}: the runner's counts are none"
    samples, reason = _samples(ended.report)
    return CountedOnHost(counts, samples, reason)


def _samples(report: JudgeReport) -> tuple[HostSamples | None, str]:
    if report.host_samples is None:
        return None, report.reason
    try:
        samples = HostSamples.model_validate(report.host_samples)
    except ValidationError:
        return None, "the runner's samples are none"
    return (None, samples.refused) if samples.refused else (samples, "")


def without_report(ended: Ended) -> Counted:
    """Why Nsight Compute left no report: by its own words, else by how the candidate ended."""
    if ended.deadline is not None or ended.report.outcome == "timeout":
        return Counted("timeout", f"{TIMEOUT} ({ended.deadline or ended.report.reason})")
    if "==ERROR==" in ended.ncu_log or ended.report.outcome == "passed":
        return Counted(*failure(f"{ended.ncu_log}\n{ended.outcome.output}"))
    words = tail(ended.outcome.output)
    said = f" Its last output: {words}" if words else ""
    why = f"{ended.report.outcome.replace('_', ' ')}: {ended.report.reason}"
    note = f"{NOT_READ}: the candidate did not end well under Nsight Compute ({why}).{said}"
    return Counted("candidate_failed", note)


def describe(launches: Sequence[RawLaunch]) -> str:
    """What a reader of the metrics must know: of which launch they are, and how many there were."""
    times = [seconds_of(launch) or 0.0 for launch in launches]
    longest, total = max(times), sum(times)
    share = f"{100 * longest / total:.0f} % of their time" if total else "of unknown time"
    kernel = launches[times.index(longest)].kernel
    return (
        f"Hardware counters of {_counted(len(launches))} of one call, with cold caches, by Nsight Compute; the metrics "
        f"ncu_* are those of the longest one ({share}): {kernel[:200]}."
    )


def _counted(launches: int) -> str:
    if launches == nsight.MOST_LAUNCHES:
        return f"the first {launches} kernel launches"
    return f"{launches} kernel launch{'' if launches == 1 else 'es'}"
