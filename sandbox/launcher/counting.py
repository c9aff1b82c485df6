"""Read a built candidate's hardware counters: Nsight Compute around a fresh runner, inside its box, for one call."""

from dataclasses import dataclass, replace

from hiera_mcp.errors import SandboxError
from hiera_mcp.model.profile import Metric, Profile
from hiera_mcp.sandbox import ncu
from hiera_mcp.sandbox.launcher.judging import Ended, Job, run
from hiera_mcp.sandbox.launcher.verdict import tail

NOT_READ = "Hardware counters were not read"


@dataclass(frozen=True)
class Counters:
    """What was read, or why nothing was."""

    metrics: tuple[Metric, ...]
    note: str

    def added_to(self, profile: Profile) -> Profile:
        return profile.model_copy(update={"metrics": (*profile.metrics, *self.metrics), "counters": self.note})


async def count(job: Job) -> Counters:
    """The counters of one call on the job's GPU. A failure becomes the note: the rest of a profile stands without them."""
    program = ncu.find()
    if program is None:
        return Counters((), ncu.ABSENT)
    try:
        return from_end(await run(replace(job, ncu=program)))
    except SandboxError as e:
        return Counters((), f"{NOT_READ}: {e}")


def from_end(ended: Ended) -> Counters:
    """The counters in the table that Nsight Compute left; else why there is none."""
    table = (ended.counters or b"").decode(errors="replace")
    launches = ncu.parse_csv(table)
    if launches:
        return Counters(ncu.metrics(launches), ncu.describe(launches))
    if "==ERROR==" in table or _went_well(ended):
        return Counters((), ncu.failure(f"{table}\n{ended.outcome.output}") or NOT_READ)
    why = ended.deadline or f"{ended.report.outcome.replace('_', ' ')}: {ended.report.reason}"
    words = tail(ended.outcome.output)
    said = f" Its last output: {words}" if words else ""
    return Counters((), f"{NOT_READ}: the candidate did not end well under Nsight Compute ({why}).{said}")


def _went_well(ended: Ended) -> bool:
    return ended.deadline is None and ended.report.outcome == "passed"
