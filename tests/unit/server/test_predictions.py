"""A strategy's prediction through the whole loop: recorded, told by the profile, told by the status of the run."""

from typing import Any

import pytest

from hiera_mcp.model.profile import Metric, Profile, Profiled


async def planned(call: Any, metric: str, change: str, **budget: Any) -> str:
    """A run whose first strategy predicts this."""
    run_id: str = (await call("hiera_run_start", contract_id=call.contract_id, **budget))["run_id"]
    await plan(call, run_id, metric, change)
    return run_id


async def plan(call: Any, run_id: str, metric: str, change: str) -> None:
    """A round whose strategy predicts this."""
    space = (await call("hiera_plan_space", run_id=run_id, choice="recommended"))["choice"]
    direction = (await call("hiera_plan_direction", run_id=run_id, choice="recommended"))["choice"]
    strategy = {
        "title": "mine",
        "space": space,
        "direction": direction,
        "steps": ["Do."],
        "predicted_metric": metric,
        "predicted_change": change,
    }
    await call("hiera_plan_strategy", run_id=run_id, strategy=strategy, reason="r")


async def told(call: Any, run_id: str) -> str:
    """What the status says of the strategy's prediction."""
    rows = (await call("hiera_run_status", run_id=run_id))["decisions"]
    assert {row["prediction"] for row in rows if row["kind"] != "strategy"} == {""}
    return rows[-1]["prediction"]


async def submit(call: Any, run_id: str, name: str, text: str, parent: str | None = None) -> str:
    one = {"name": name, "sources": {"cpu_source.cpp": text}} | ({"parent_id": parent} if parent else {})
    answer = await call("hiera_candidates_evaluate", run_id=run_id, candidates=[one])
    return answer["results"][0]["candidate_id"]


@pytest.mark.parametrize(
    ("change", "verdict"), [("-50 %", "held"), ("-80 %", "moved so, but by less"), ("rises", "refuted")]
)
async def test_without_a_parent_a_predicted_time_is_held_against_eager_pytorch(
    bench: Any, change: str, verdict: str
) -> None:
    async with bench.session() as call:
        run_id = await planned(call, "time", change)
        before = await told(call, run_id)
        await submit(call, run_id, "failed", "broken")
        without_verdict = await told(call, run_id)
        await submit(call, run_id, "fast", "pass 1e-4")
        after = await told(call, run_id)
    assert before == without_verdict == ""
    assert after == f"time {change}: {verdict} (0.0002 → 0.0001 s), fast against eager PyTorch"


async def test_a_child_that_is_no_faster_than_its_parent_refutes_the_prediction(bench: Any) -> None:
    async with bench.session() as call:
        run_id = await planned(call, "time", "-20 %", rounds=2)
        parent = await submit(call, run_id, "parent", "pass 1e-4")
        await plan(call, run_id, "time", "-30 %")
        child = await submit(call, run_id, "child", "pass 1e-4", parent)
        profile = (await call("hiera_candidate_profile", candidate_id=child))["profile"]
        second = await told(call, run_id)
    said = "time -30 %: refuted, it did not move (0.0001 → 0.0001 s)"
    assert second == f"{said}, child against parent"
    assert profile["changes"] == [f"predicted: {said}"]  # the parent has no profile, so nothing else is told


def wide(loads: int) -> Profiled:
    mix = {"load": 10 - loads, "wide_load": loads}
    metric = Metric(name="time", value=1e-4, unit="s", origin="derived")
    return Profiled(profile=Profile(bottleneck="memory", summary="s", metrics=(metric,), instruction_mix=mix))


async def test_a_predicted_share_of_the_instruction_mix_is_read_from_both_profiles(bench: Any) -> None:
    bench.executor.profiles += [wide(2), wide(9)]
    async with bench.session() as call:
        run_id = await planned(call, "wide_load_share", "rises to 0.8")
        parent = await submit(call, run_id, "parent", "pass 1e-4")
        child = await submit(call, run_id, "child", "pass 9e-5", parent)
        unprofiled = await told(call, run_id)
        await call("hiera_candidate_profile", candidate_id=parent)
        found = (await call("hiera_candidate_profile", candidate_id=child))["profile"]
        status = await told(call, run_id)
    line = "wide_load_share rises to 0.8: held (0.2 → 0.9)"
    assert "unknown, no candidate of the round is profiled beside its parent" in unprofiled
    assert found["changes"][0] == f"predicted: {line}"
    assert status == f"{line}, child against parent"


async def test_where_the_parent_has_no_profile_the_child_says_so(bench: Any) -> None:
    bench.executor.profiles += [wide(9)]
    async with bench.session() as call:
        run_id = await planned(call, "wide_load_share", "rises")
        parent = await submit(call, run_id, "parent", "pass 1e-4")
        child = await submit(call, run_id, "child", "pass 9e-5", parent)
        found = (await call("hiera_candidate_profile", candidate_id=child))["profile"]
    assert found["changes"] == [f"predicted: wide_load_share rises: unknown, parent ({parent}) has not been profiled"]
