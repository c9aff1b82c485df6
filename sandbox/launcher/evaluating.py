"""Evaluate a candidate: build → space → judge; and profile one from its binary and its measured time."""

import base64
import time

from hiera_mcp.model.evaluation import Evaluation, NotRun
from hiera_mcp.model.profile import Profile, Profiled
from hiera_mcp.model.work import EvaluateRequest, ProfileRequest
from hiera_mcp.sandbox import evidence
from hiera_mcp.sandbox.devices import device_for
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.launcher.building import build
from hiera_mcp.sandbox.launcher.counting import Counted, CountedOnHost, count, count_on_host
from hiera_mcp.sandbox.launcher.host import Host, device_of
from hiera_mcp.sandbox.launcher.judging import Job, judge
from hiera_mcp.sandbox.launcher.locating import locate
from hiera_mcp.sandbox.launcher.verdict import not_built
from hiera_mcp.sandbox.profiling.host import with_host_counts
from hiera_mcp.sandbox.profiling.host_lines import instructions, raw_launch, trimmed, with_lines, without_lines
from hiera_mcp.sandbox.profiling.judgement import judged
from hiera_mcp.sandbox.profiling.launches import launches
from hiera_mcp.sandbox.profiling.listing import listing


async def evaluate(host: Host, request: EvaluateRequest, notify: Notify) -> Evaluation | NotRun:
    """One status, or NotRun where the target has no device here."""
    started = time.monotonic()
    target = request.contract.target
    device = device_for(target, request.device)
    built = await build(host, request, notify)
    here = device_of(host, target, device).model_copy(update={"compiler": built.compiler or None})
    result = not_built(built, here)
    if result is None and device is None:
        reason = f"built and inside its space; this host has no GPU that can run {target}, so nothing ran"
        return NotRun(reason=reason, build=built.build, device=here)
    if result is None:
        assert device is not None
        result, ready = await judge(Job(host, request, built, device, notify))
        here = here.model_copy(update=ready.facts)
    seconds = time.monotonic() - started
    return result.model_copy(update={"build": built.build, "device": here, "seconds": seconds})


async def profile(host: Host, request: ProfileRequest, notify: Notify) -> Profiled:
    """Static and derived evidence; on a GPU also hardware counters, where they can be read."""
    target = request.contract.target
    device = device_for(target, request.device)
    built = await build(host, request, notify)
    here = device_of(host, target, device)
    found = evidence.profile(request, built, here)
    if device is None or not_built(built, here):
        return Profiled(profile=judged(found, request, ()))
    await notify("reading hardware counters", None)
    job = Job(host, request, built, device, notify)
    if device == "cpu":
        return await _on_host(judged(found, request, ()), job, await count_on_host(job))
    return with_counters(found, request, await count(job))


async def _on_host(found: Profile, job: Job, counted: CountedOnHost | str) -> Profiled:
    if isinstance(counted, str):
        return Profiled(profile=found.model_copy(update={"counters": counted, "counters_status": "failed"}))
    profile = with_host_counts(found, job.request.contract, counted.counts)
    if counted.samples is None:
        return Profiled(profile=without_lines(profile, counted.reason))
    sources, samples = job.request.sources, trimmed(counted.samples, job.built.kind == "python")
    located = await locate(job.host, job.built.folder, samples, sources.keys())
    code = instructions(located.code, located.places)
    shown = with_lines(profile, samples, located.code, located.places, sources, located.reason)
    return Profiled(profile=shown, listing=listing([raw_launch(code)]) if code else "")


def with_counters(found: Profile, request: ProfileRequest, counted: Counted) -> Profiled:
    """The profile with what the counters say, and the files that go with it."""
    facts = {"counters": counted.note, "counters_status": counted.status, "counters_tool": counted.tool}
    seen = launches(counted.launches, request.sources)
    return Profiled(
        profile=judged(found.model_copy(update=facts), request, seen),
        report=base64.b64encode(counted.report).decode(),
        listing=listing(counted.launches),
    )
