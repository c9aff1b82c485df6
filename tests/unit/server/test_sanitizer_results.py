"""compute-sanitizer through the tools: on request, for each new best on a GPU, and what a bad access costs a candidate."""

from typing import Any

import anyio
import pytest

from hiera_mcp.model.sanitizer import SANITIZERS, Finding, Sanitized, ToolResult

CLEAN = Sanitized(results=tuple(ToolResult(tool=t, status="clean") for t in SANITIZERS), log="nothing was said")
WRONG = Sanitized(
    results=(
        ToolResult(tool="memcheck", status="findings"),
        *(ToolResult(tool=t, status="skipped", note="memcheck comes first") for t in SANITIZERS[1:]),
    ),
    findings=(
        Finding(
            tool="memcheck",
            severity="error",
            what="Invalid __global__ write of size 4 bytes, out of bounds",
            kernel="scale(float *)",
            file="cuda_source.cu",
            line=12,
            text="y[i] = x[i];",
            space="global",
            count=32,
            detail="by thread (31,0,0) in block (7,0,0)",
        ),
    ),
    log="========= Invalid __global__ write of size 4 bytes",
)
RACE = Sanitized(
    results=(ToolResult(tool="racecheck", status="findings"),),
    findings=(Finding(tool="racecheck", severity="error", what="race", kernel="k", file="a.cu", space="shared"),),
)


@pytest.fixture
def gpu(bench: Any) -> Any:
    """The same server, for a contract on a GPU."""
    bench.contract = bench.contract.model_copy(update={"target": "cuda:sm_90a"})
    return bench


def submission(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "sources": {"cuda_source.cu": text}}


async def evaluate(call: Any, run_id: str, **texts: str) -> Any:
    candidates = [submission(name, text) for name, text in texts.items()]
    return await call("hiera_candidates_evaluate", run_id=run_id, candidates=candidates)


async def test_a_new_best_on_a_gpu_is_looked_at_once_and_its_row_says_so(gpu: Any) -> None:
    gpu.executor.sanitized += [CLEAN, CLEAN]
    async with gpu.session() as call:
        run_id = await call.planned_run()
        await evaluate(call, run_id, slow="pass 1e-4", fast="pass 5e-5")
        second = await evaluate(call, run_id, slower="pass 9e-5")
        status = await call.settled(run_id)
    assert [t for t in gpu.executor.started if t.startswith("sanitize")] == ["sanitize pass 5e-5"]
    assert second["best"] is None or second["best"]["name"] == "fast"
    assert status["best"]["name"] == "fast"
    assert status["best"]["reason"].endswith("clean: memcheck, racecheck, initcheck, synccheck")


async def test_a_candidate_that_touches_memory_it_must_not_is_not_the_best_and_says_why(gpu: Any) -> None:
    gpu.executor.sanitized += [WRONG, CLEAN]
    async with gpu.session() as call:
        run_id = await call.planned_run()
        await evaluate(call, run_id, right="pass 1e-4", wild="pass 5e-5")
        status = await call.settled(run_id)
    rows = {row["name"]: row for row in status["candidates"]}
    assert status["best"]["name"] == "right"
    assert [p["name"] for p in status["parents"]] == ["right"]
    assert rows["wild"]["reason"].startswith("MEMORY ERROR") and "cuda_source.cu:12" in rows["wild"]["reason"]
    assert rows["wild"]["status"] == "passed" and not rows["wild"]["is_best"]


async def test_a_run_whose_only_candidate_touches_foreign_memory_has_no_best(gpu: Any) -> None:
    gpu.executor.sanitized += [WRONG]
    async with gpu.session() as call:
        run_id = await call.planned_run()
        await evaluate(call, run_id, wild="pass 5e-5")
        status = await call.settled(run_id)
    assert status["best"] is None and status["parents"] == []


async def test_a_race_is_told_and_costs_nothing(gpu: Any) -> None:
    gpu.executor.sanitized += [RACE]
    async with gpu.session() as call:
        run_id = await call.planned_run()
        await evaluate(call, run_id, racy="pass 5e-5")
        best = (await call.settled(run_id))["best"]
    assert best["name"] == "racy" and "racecheck error: race" in best["reason"]


async def test_a_verdict_and_the_next_round_do_not_wait_for_it_and_the_end_of_the_run_does(gpu: Any) -> None:
    gpu.executor.looks_on = anyio.Event()
    async with gpu.session() as call:
        run_id = await call.planned_run(rounds=2)
        first = await evaluate(call, run_id, k="pass 1e-4")
        assert first["state"] == "done" and first["best"]["name"] == "k"
        assert "hiera_candidate_profile" in first["next_step"] and "compute-sanitizer" not in first["next_step"]
        await call.plan(run_id)
        second = await evaluate(call, run_id, slower="pass 2e-4")
        (job,) = (await call("hiera_run_status", run_id=run_id))["open_jobs"]
        assert second["next_step"].startswith("compute-sanitizer is looking at the best candidate")
        assert f'hiera_job(job_id="{job["job_id"]}", action="wait")' in second["next_step"]
        assert job["job_id"] in await call.error("hiera_run_finish", run_id=run_id)
        gpu.executor.looks_on.set()
        await call.settled(run_id)
        assert (await call("hiera_run_finish", run_id=run_id))["run"]["state"] == "finished"


async def test_when_a_best_loses_its_place_the_next_one_is_looked_at_too(gpu: Any) -> None:
    gpu.executor.sanitized += [WRONG, WRONG, CLEAN]
    async with gpu.session() as call:
        run_id = await call.planned_run()
        await evaluate(call, run_id, third="pass 3e-4", second="pass 2e-4", first="pass 1e-4")
        status = await call.settled(run_id)
    looked_at = [t for t in gpu.executor.started if t.startswith("sanitize")]
    assert looked_at == ["sanitize pass 1e-4", "sanitize pass 2e-4", "sanitize pass 3e-4"]
    assert status["best"]["name"] == "third"


async def test_on_cpu_no_best_is_looked_at(bench: Any) -> None:
    async with bench.session() as call:
        await call.evaluate(await call.planned_run(), "pass 1e-4")
    assert not any(t.startswith("sanitize") for t in bench.executor.started)


async def test_on_request_every_finding_is_told_with_its_place_and_kept(gpu: Any) -> None:
    gpu.executor.sanitized += [CLEAN, WRONG]
    async with gpu.session() as call:
        run_id = await call.planned_run()
        row = (await evaluate(call, run_id, k="pass 5e-5"))["results"][0]
        await call.settled(run_id)
        answer = await call("hiera_candidate_profile", candidate_id=row["candidate_id"], sanitize=True)
        found = answer["sanitizer"]
        kept = await call("hiera_artifact_read", uri=found["uri"])
        log = await call("hiera_artifact_read", uri=f"{found['uri']}/log")
        status = await call("hiera_run_status", run_id=run_id)
    assert answer["profile"] is None
    assert found["tools"]["memcheck"] == "findings" and found["tools"]["racecheck"].startswith("skipped: ")
    assert found["findings"][0].startswith("memcheck error: Invalid __global__ write of size 4 bytes, out of bounds at")
    assert "cuda_source.cu:12 in scale(float *), 32 times" in found["findings"][0]
    assert '"space": "global"' in kept["text"] and "Invalid __global__" in log["text"]
    assert status["best"] is None  # the newest result counts


async def test_what_was_not_built_has_nothing_to_look_at(gpu: Any) -> None:
    async with gpu.session() as call:
        row = (await evaluate(call, await call.planned_run(), k="broken"))["results"][0]
        text = await call.error("hiera_candidate_profile", candidate_id=row["candidate_id"], sanitize=True)
        uri = f"hiera://candidates/{row['candidate_id']}/sanitizer"
        unread = await call.error("hiera_artifact_read", uri=uri)
    assert "compile_error" in text and "sanitize=true" in unread
