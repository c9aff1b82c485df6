"""hiera_candidate_profile with counters: what an agent reads, and the files behind it."""

import base64
import json
from typing import Any

import pytest

from hiera_mcp.model.profile import DirectionSigns, Launch, Metric, Profile, Profiled, Roofline, SourceLine, Stall
from hiera_mcp.model.space import Direction

MOST_CHARACTERS = 7000
"""About 2,000 tokens."""


LAUNCH = Launch(
    kernel="scale(float*)",
    share=1.0,
    seconds=1e-4,
    metrics=(
        Metric(name="dram_pct", value=81.0, unit="%", origin="counter"),
        Metric(name="waves", value=None, unit="", origin="counter", reason="ncu gave no value"),
    ),
    stalls=(Stall(reason="long_scoreboard", cycles=100.0, share=0.94),),
    lines=(
        SourceLine(
            file="cuda_source.cu",
            line=8,
            text="out[i] = x[i];",
            samples=95,
            share=0.95,
            stall="long_scoreboard",
            stall_share=0.99,
            instruction="STG.E.128 [R2], R8",
            sectors_over_ideal=8.0,
        ),
    ),
)


def profiled(seconds: float, dram_read: float) -> Profiled:
    place = Roofline(
        seconds=seconds,
        floor_seconds=5e-5,
        bound="memory",
        intensity=0.25,
        attainable_flops=1e12,
        achieved_flops=5e11,
        bandwidth=4.8e12,
        peak_flops=6.7e13,
    )
    profile = Profile(
        bottleneck="memory",
        summary="Moves too much.",
        metrics=(
            Metric(name="time", value=seconds, unit="s", origin="derived"),
            Metric(name="ncu_dram_read", value=dram_read, unit="byte", origin="counter"),
        ),
        counters="Hardware counters of 1 kernel launch.",
        counters_status="read",
        launches=(LAUNCH.model_copy(update={"seconds": seconds}),),
        roofline=place,
        directions=tuple(
            DirectionSigns(direction=d, score=i, signs_for=("a value 1",), signs_against=("a value 2",))
            for i, d in enumerate(Direction)
        ),
    )
    listing = "==== scale(float*)\n000080      95  long_scoreboard  1024  cuda_source.cu:8  STG.E.128 [R2], R8"
    return Profiled(profile=profile, report=base64.b64encode(b"NVR\x00report").decode(), listing=listing)


async def test_the_answer_comes_first_and_the_rest_is_at_addresses(bench: Any) -> None:
    bench.executor.profiles.append(profiled(1e-4, 1e9))
    async with bench.session() as call:
        candidate = (await call.evaluate(await call.planned_run(), "pass 1e-4"))["results"][0]["candidate_id"]
        found = (await call("hiera_candidate_profile", candidate_id=candidate))["profile"]
        listing = await call("hiera_artifact_read", uri=found["uris"]["listing"], grep="cuda_source.cu:8")
        report = (await call.client.read_resource(found["uris"]["report"])).contents[0]
        refused = await call.error("hiera_artifact_read", uri=found["uris"]["report"])
        pictures = [await call("hiera_artifact_read", uri=found["uris"][name]) for name in ("roofline", "stalls")]
    assert (found["bottleneck"], found["counters_status"]) == ("memory", "read")
    assert "cuda_source.cu:8 95% of the samples, long_scoreboard 99%, 8× the sectors: STG" in found["lines"][0]
    assert found["launches"][0]["values"]["waves"] is None
    assert "STG.E.128" in listing["text"] and listing["total_lines"] == 1
    assert base64.b64decode(report.blob) == b"NVR\x00report"
    assert "is not text" in refused
    assert all(picture["text"].startswith("<svg") for picture in pictures)
    assert len(json.dumps(found)) < MOST_CHARACTERS


async def test_on_cpu_the_lines_come_without_what_only_a_gpu_has(bench: Any) -> None:
    facts = {"samples": 90, "share": 0.9, "stall": "", "stall_share": 0.0}
    own = SourceLine.model_validate(
        {"file": "cpu_source.cpp", "line": 7, "text": "s / x", "instruction": "div", **facts}
    )
    other = SourceLine.model_validate({"file": "libm.so.6", "line": 0, "text": "expf", "instruction": "", **facts})
    launch = Launch(kernel="the call", share=1.0, seconds=None, metrics=(), lines=(own, other))
    profile = Profile(bottleneck="latency", summary="Slow.", metrics=(), launches=(launch,))
    bench.executor.profiles.append(Profiled(profile=profile, listing="001280  90  cpu_source.cpp:7  div"))
    async with bench.session() as call:
        candidate = (await call.evaluate(await call.planned_run(), "pass 1e-4"))["results"][0]["candidate_id"]
        found = (await call("hiera_candidate_profile", candidate_id=candidate))["profile"]
        listing = await call("hiera_artifact_read", uri=found["uris"]["listing"], grep="cpu_source.cpp:7")
        base = f"hiera://candidates/{candidate}/profile"
        refused = [await call.error("hiera_artifact_read", uri=f"{base}/{part}") for part in ("report", "stalls.svg")]
    assert found["lines"] == [
        "cpu_source.cpp:7 90% of the samples: div | s / x",
        "libm.so.6 90% of the samples: expf",
    ]
    assert (found["launches"], set(found["uris"])) == ([], {"profile", "listing"})
    assert listing["total_lines"] == 1 and all("no profile that holds this" in text for text in refused)


async def test_a_child_is_compared_with_its_parent_and_the_prediction_is_checked(bench: Any) -> None:
    bench.executor.profiles += [profiled(1e-4, 1e9), profiled(6e-5, 1.01e9)]
    async with bench.session() as call:
        run_id = await call.planned_run()
        parent = (await call.evaluate(run_id, "pass 1e-4"))["results"][0]["candidate_id"]
        child = {"name": "child", "sources": {"cpu_source.cpp": "pass 6e-5"}, "parent_id": parent}
        row = (await call("hiera_candidates_evaluate", run_id=run_id, candidates=[child]))["results"][0]
        first = (await call("hiera_candidate_profile", candidate_id=parent))["profile"]
        second = (await call("hiera_candidate_profile", candidate_id=row["candidate_id"]))["profile"]
    assert first["changes"] == []
    assert "time 0.0001 → 6e-05 s (better)" in second["changes"]
    assert not any("ncu_dram_read" in change for change in second["changes"])
    assert second["changes"][0].startswith("predicted: ")


@pytest.mark.parametrize("part", ["listing", "report", "roofline.svg", "stalls.svg"])
async def test_what_a_profile_does_not_hold_is_refused_with_what_to_call(bench: Any, part: str) -> None:
    async with bench.session() as call:
        candidate = (await call.evaluate(await call.planned_run(), "pass 1e-4"))["results"][0]["candidate_id"]
        await call("hiera_candidate_profile", candidate_id=candidate)
        text = await call.error("hiera_artifact_read", uri=f"hiera://candidates/{candidate}/profile/{part}")
    assert "no profile that holds this" in text
