"""Reports that were recorded on an H200 (tests/data/profiles, by scripts/record_profiles.py): all readers give the same
launches, and each planted defect is judged as what it is."""

import importlib.util
import json
import lzma
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.model.contract import Contract, Features, Floor
from hiera_mcp.model.evaluation import Timing
from hiera_mcp.model.profile import Launch, Profile
from hiera_mcp.model.space import spaces_of
from hiera_mcp.model.work import ProfileRequest
from hiera_mcp.sandbox.profiling.judgement import judged
from hiera_mcp.sandbox.profiling.launches import launches
from hiera_mcp.sandbox.profiling.listing import listing
from hiera_mcp.sandbox.profiling.nsight import PAGES
from hiera_mcp.sandbox.profiling.pages import from_pages
from hiera_mcp.sandbox.profiling.raw import RawLaunch, from_json
from hiera_mcp.tools.profile_view import profile_view

DATA = Path(__file__).parents[2] / "data" / "profiles"
PLANTED: list[dict[str, str]] = tomllib.loads((DATA / "planted.toml").read_text())["kernel"]
RECORDED: dict[str, Any] = json.loads((DATA / "recorded.json").read_text())["kernels"]
WITH_REPORT = sorted(path.name.partition(".")[0] for path in (DATA / "recorded").glob("*.ncu-rep.xz"))
STRONG = 3
MOST_CHARACTERS = 7000
"""About 2,000 tokens."""

Judge = Callable[[str], Profile]


def unpacked(name: str) -> bytes:
    return lzma.decompress((DATA / "recorded" / f"{name}.xz").read_bytes())


def raw(name: str) -> tuple[RawLaunch, ...]:
    return from_json(json.loads(unpacked(f"{name}.json")))


def sources(name: str) -> dict[str, str]:
    return {"cuda_source.cu": (DATA / "kernels" / f"{name}.cu").read_text()}


@pytest.fixture
def judge(contract: Contract) -> Judge:
    """The profile of a recorded kernel, with the floor of its task and the time that was measured."""

    def judge(name: str) -> Profile:
        facts = RECORDED[name]
        parts = {"features": Features.model_validate(facts["features"]), "floor": Floor.model_validate(facts["floor"])}
        request = ProfileRequest(
            contract=contract.model_copy(update=parts),
            files={},
            space=spaces_of(contract.target)[0],
            sources=sources(name),
            timing=Timing.model_validate(facts["timing"]),
        )
        empty = Profile(bottleneck="unknown", summary="s", metrics=(), counters_status="read")
        return judged(empty, request, launches(raw(name), request.sources))

    return judge


@pytest.mark.parametrize("planted", [p for p in PLANTED if p["name"] in RECORDED], ids=lambda p: p["name"])
def test_a_planted_defect_is_found_and_its_twin_is_free_of_it(judge: Judge, planted: dict[str, str]) -> None:
    profile = judge(planted["name"])
    score = {d.direction.value: d.score for d in profile.directions}
    if "without" in planted:
        said = [sign for d in profile.directions for sign in d.signs_for]
        assert not any(planted["without"] in sign for sign in said), said
        return
    assert profile.bottleneck == planted["bottleneck"], profile.summary
    if planted["first"] == "nothing":
        assert set(score.values()) == {0}, profile.directions
        return
    first = profile.directions[0]
    assert (first.direction.value, first.score >= STRONG) == (planted["first"], True), profile.directions
    assert planted.get("quoted", "") in " ".join(first.signs_for)


@pytest.mark.parametrize("name", RECORDED)
def test_a_profile_fits_into_an_answer(judge: Judge, name: str) -> None:
    assert len(profile_view(judge(name), "k_0123456789ab").model_dump_json()) < MOST_CHARACTERS


def test_every_planted_kernel_is_recorded() -> None:
    assert [p["name"] for p in PLANTED] == list(RECORDED)


@pytest.mark.parametrize(
    ("name", "text", "stall"),
    [
        ("uncoalesced", "out[at] = x[at] * 1.5f + .5f;", "long_scoreboard"),
        ("contended_atomics", "atomicAdd(&out[i % kColumns], x[i]);", "long_scoreboard"),
        ("bank_conflicts", "tile[k][threadIdx.x] = x[size_t(row + k) * kSide + column + threadIdx.x];", None),
    ],
)
def test_the_line_that_costs_is_named_with_its_text(judge: Judge, name: str, text: str, stall: str | None) -> None:
    line = judge(name).launches[0].lines[0]
    assert line.text == text and line.instruction
    assert stall is None or line.stall == stall


def test_the_excess_of_sectors_is_told_by_line(judge: Judge) -> None:
    assert judge("uncoalesced").launches[0].lines[0].sectors_over_ideal == 8.0


def test_all_launches_of_a_call_are_kept_with_their_share(judge: Judge) -> None:
    first, second = judge("two_kernels").launches
    assert first.kernel.startswith("multiply") and second.kernel.startswith("add")
    assert first.share + second.share == pytest.approx(1, abs=1e-3)


def test_nvidias_rules_are_overruled_where_nothing_is_left_to_tune(judge: Judge) -> None:
    hints = judge("roofline_copy").launches[0].hints
    assert any((hint.gain_percent or 0) > 80 for hint in hints)
    assert all(hint.overruled for hint in hints)


def test_the_listing_finds_the_machine_code_of_a_line() -> None:
    found = [line for line in listing(raw("contended_atomics")).splitlines() if "cuda_source.cu:9 " in line]
    assert any("RED" in line and "long_scoreboard" in line for line in found)


@pytest.mark.parametrize("name", WITH_REPORT)
def test_what_ncu_prints_gives_the_same_launches_as_its_report(name: str) -> None:
    pages = from_pages(*(unpacked(f"{name}.{page}.csv").decode() for page in PAGES))
    for ours, theirs in zip(launches(raw(name), sources(name)), launches(pages, sources(name)), strict=True):
        assert_same(ours, theirs)
    for one, other in zip(raw(name), pages, strict=True):
        assert {i.offset: (i.sass, i.file, i.line, i.stalls) for i in one.instructions} == {
            i.offset: (i.sass, i.file, i.line, i.stalls) for i in other.instructions
        }


@pytest.mark.skipif(importlib.util.find_spec("ncu_report") is None, reason="needs the package ncu-report")
@pytest.mark.parametrize("name", WITH_REPORT)
def test_nvidias_reader_gives_what_was_recorded(name: str, tmp_path: Path) -> None:
    report, result = tmp_path / "r.ncu-rep", tmp_path / "result.json"
    report.write_bytes(unpacked(f"{name}.ncu-rep"))
    module = "hiera_mcp.sandbox.child.ncu_reader"
    command = [sys.executable, "-P", "-m", module, "--report", str(report), "--result", str(result)]
    subprocess.run(command, check=True, timeout=60)
    assert from_json(json.loads(result.read_text())) == raw(name)


def assert_same(ours: Launch, theirs: Launch) -> None:
    """Equal but for rounding: ncu prints two or three digits."""
    assert (ours.kernel, ours.seconds, ours.lines) == (theirs.kernel, theirs.seconds, theirs.lines)
    for one, other in zip(ours.metrics, theirs.metrics, strict=True):
        assert (one.name, one.unit, one.reason) == (other.name, other.unit, other.reason)
        assert one.value == pytest.approx(other.value, rel=2e-3, abs=6e-3)
    assert {s.reason: s.cycles for s in ours.stalls} == pytest.approx(
        {s.reason: s.cycles for s in theirs.stalls}, rel=2e-3, abs=6e-3
    )
    assert {(h.rule, h.message, h.scope) for h in ours.hints} == {(h.rule, h.message, h.scope) for h in theirs.hints}
