"""What is kept of a candidate."""

from typing import TypeVar

from hiera_mcp.errors import NotFoundError
from hiera_mcp.model.evaluation import Evaluation, NotRun
from hiera_mcp.resources.base import BINARY, SVG, TEXT, Ctx, Resource, as_json, deps_of
from hiera_mcp.sandbox.profiling.pictures import longest, roofline_svg, stalls_svg

T = TypeVar("T")


async def candidate_source(candidate_id: str, ctx: Ctx) -> str:
    """A candidate's sources, each under a line with its file name."""
    candidate = await deps_of(ctx).database(lambda s: s.candidate(candidate_id))
    return "\n".join(f"// ==== {name} ====\n{text}" for name, text in candidate.sources.items())


async def candidate_log(candidate_id: str, ctx: Ctx) -> str:
    """The compiler's output and what the candidate printed."""
    outcome = await _outcome(candidate_id, ctx)
    build = outcome.build
    parts = [f"==== compiler: {build.command} ====\n{build.log}" if build else "==== it was not compiled ===="]
    if isinstance(outcome, Evaluation):
        parts.append(f"==== printed while it ran ====\n{outcome.log}")
    return "\n".join(parts)


async def candidate_evaluation(candidate_id: str, ctx: Ctx) -> str:
    """A candidate's evaluation in full: build, space findings, verification with margin, timing, device."""
    return as_json(await _outcome(candidate_id, ctx))


async def candidate_profile(candidate_id: str, ctx: Ctx) -> str:
    """A candidate's newest profile."""
    await deps_of(ctx).database(lambda s: s.candidate(candidate_id))
    profile = await deps_of(ctx).database(lambda s: s.profile(candidate_id))
    if profile is None:
        raise NotFoundError(
            f"Candidate {candidate_id} has not been profiled.",
            todo=f"Call hiera_candidate_profile(candidate_id='{candidate_id}').",
        )
    return as_json(profile)


async def candidate_profile_listing(candidate_id: str, ctx: Ctx) -> str:
    """Machine code of the profiled kernels: samples, stall, source line of each instruction. Search for `file:line`."""
    found = await deps_of(ctx).database(lambda s: s.profile_listing(candidate_id))
    return _kept(found, candidate_id)


async def candidate_profile_report(candidate_id: str, ctx: Ctx) -> bytes:
    """Nsight Compute's own report, a file that its GUI opens (save it as NAME.ncu-rep)."""
    found = await deps_of(ctx).database(lambda s: s.profile_report(candidate_id))
    return _kept(found, candidate_id)


async def candidate_roofline(candidate_id: str, ctx: Ctx) -> str:
    """Where the candidate stands under the roofs of its contract's floor, as SVG."""
    profile = await deps_of(ctx).database(lambda s: s.profile(candidate_id))
    place = _kept(profile.roofline if profile else None, candidate_id)
    return roofline_svg(place, f"Roofline of {candidate_id}")


async def candidate_stalls(candidate_id: str, ctx: Ctx) -> str:
    """What the warps of the longest launch waited for, as SVG."""
    profile = await deps_of(ctx).database(lambda s: s.profile(candidate_id))
    waiting = [launch for launch in profile.launches if launch.stalls] if profile else []
    launch = _kept(longest(waiting), candidate_id)
    return stalls_svg(launch.stalls, f"Stalls of {launch.kernel}")


async def candidate_sanitizer(candidate_id: str, ctx: Ctx) -> str:
    """What compute-sanitizer found in a candidate: tool, what, kernel, file and line, address space, how often."""
    run_id = (await deps_of(ctx).database(lambda s: s.candidate(candidate_id))).run_id
    found = (await deps_of(ctx).database(lambda s: s.sanitized(run_id))).get(candidate_id)
    return as_json(_checked(found, candidate_id))


async def candidate_sanitizer_log(candidate_id: str, ctx: Ctx) -> str:
    """What the tools of compute-sanitizer printed."""
    return _checked(await deps_of(ctx).database(lambda s: s.sanitizer_log(candidate_id)), candidate_id)


def _checked(found: T | None, candidate_id: str) -> T:
    if found is None:
        raise NotFoundError(
            f"compute-sanitizer has not looked at candidate {candidate_id}.",
            todo=f"Call hiera_candidate_profile(candidate_id='{candidate_id}', sanitize=true).",
        )
    return found


def _kept(found: T | None, candidate_id: str) -> T:
    if found is None:
        raise NotFoundError(
            f"Candidate {candidate_id} has no profile that holds this.",
            todo=f"Call hiera_candidate_profile(candidate_id='{candidate_id}'); its `uris` name what there is.",
        )
    return found


async def _outcome(candidate_id: str, ctx: Ctx) -> Evaluation | NotRun:
    await deps_of(ctx).database(lambda s: s.candidate(candidate_id))
    outcome = await deps_of(ctx).database(lambda s: s.outcome(candidate_id))
    if outcome is None:
        raise NotFoundError(
            f"Candidate {candidate_id} has no result yet.", todo="Wait for its job, or submit it again."
        )
    return outcome


SOURCE = Resource("hiera://candidates/{candidate_id}/source", candidate_source, "Sources of a candidate", TEXT)
LOG = Resource("hiera://candidates/{candidate_id}/log", candidate_log, "Logs of a candidate", TEXT)
EVALUATION = Resource("hiera://candidates/{candidate_id}/evaluation", candidate_evaluation, "Evaluation of a candidate")
PROFILE = Resource("hiera://candidates/{candidate_id}/profile", candidate_profile, "Profile of a candidate")
LISTING = Resource(
    "hiera://candidates/{candidate_id}/profile/listing", candidate_profile_listing, "Machine code with samples", TEXT
)
REPORT = Resource(
    "hiera://candidates/{candidate_id}/profile/report", candidate_profile_report, "Nsight Compute report", BINARY
)
ROOFLINE = Resource(
    "hiera://candidates/{candidate_id}/profile/roofline.svg", candidate_roofline, "Roofline of a candidate", SVG
)
STALLS = Resource(
    "hiera://candidates/{candidate_id}/profile/stalls.svg", candidate_stalls, "Stalls of a candidate", SVG
)
SANITIZER = Resource("hiera://candidates/{candidate_id}/sanitizer", candidate_sanitizer, "Memory errors and races")
SANITIZER_LOG = Resource(
    "hiera://candidates/{candidate_id}/sanitizer/log", candidate_sanitizer_log, "Output of compute-sanitizer", TEXT
)
