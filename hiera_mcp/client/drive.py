"""Drives a whole run over MCP: contract, then per round three decisions and the candidates, then the export."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mcp import Client
from pydantic import JsonValue

from hiera_mcp.client.events import ContractBuilt, Decided, Evaluated, Progress, RunStarted, Tell
from hiera_mcp.client.report import CandidateRow, ContractView, DecisionRow, RunReport, RunView
from hiera_mcp.client.script import RECOMMENDED, Choice, Round, Script, Submission
from hiera_mcp.client.session import Answer, Session
from hiera_mcp.errors import RequestError
from hiera_mcp.model.space import MODEL_FILE, is_cpu

MOST_PER_CALL = 6
"""So many candidates fit into one call of hiera_candidates_evaluate."""
SUFFIXES = (".cu", ".cpp")


async def drive(client: Client, script: Script, tell: Tell) -> RunReport:
    """Run a script on a connected server.

    Raises:
        ToolFailed: the server refused a step.
        RequestError: a candidate is written for another platform than the contract's.
        MCPError: the connection failed.
    """
    started = time.monotonic()

    async def progress(message: str, fraction: float | None) -> None:
        tell(Progress(message, fraction))

    session = Session(client, progress)
    _check_platform(script, script.target)
    contract = await _build(session, script)
    tell(ContractBuilt(contract))
    _check_platform(script, contract.target)
    submissions = [_fitted(c, contract) for one in script.rounds for c in one.candidates]
    run = await _start(session, script, contract)
    tell(RunStarted(run))
    for n, one in enumerate(script.rounds, 1):
        await _plan(session, run, one, tell)
        mine = [c for c in submissions if c.name in {s.name for s in one.candidates}]
        rows = await _evaluate(session, run.run_id, mine)
        tell(Evaluated(n, rows))
    return await _finish(session, contract, run.run_id, started)


async def _build(session: Session, script: Script) -> ContractView:
    answer = await session.work(
        "hiera_contract_build",
        source=script.source,
        name=script.name,
        target=script.target,
        precision=script.precision,
    )
    return ContractView.model_validate(answer["contract"])


async def _start(session: Session, script: Script, contract: ContractView) -> RunView:
    most = max(len(one.candidates) for one in script.rounds)
    answer = await session.call(
        "hiera_run_start",
        contract_id=contract.contract_id,
        goal=script.goal,
        rounds=len(script.rounds),
        candidates_per_round=max(most, MOST_PER_CALL),
        plan=[*script.plan] or None,
    )
    return RunView.model_validate(answer)


async def _plan(session: Session, started: RunView, one: Round, tell: Tell) -> None:
    """Space, direction, strategy: the script's choice, or the recommendation; only what the run decides at all."""
    run_id, directions = started.run_id, "no-directions" not in started.plan
    if started.space is None:
        await _decide(session, run_id, "space", _arguments(one.space), tell)
    if directions:
        await _decide(session, run_id, "direction", _arguments(one.direction), tell)
    run = await _status(session, run_id)
    arguments: dict[str, JsonValue] = {"choice": RECOMMENDED}
    if one.strategy is not None:
        strategy = one.strategy.within(str(run.space), str(run.direction) if directions else None)
        arguments = {"strategy": strategy.model_dump(mode="json")}
    await _decide(session, run_id, "strategy", arguments | {"reason": one.strategy_reason}, tell)


def _arguments(choice: Choice) -> dict[str, JsonValue]:
    return {"choice": choice.choice, "reason": choice.reason}


async def _decide(session: Session, run_id: str, kind: str, arguments: Mapping[str, JsonValue], tell: Tell) -> None:
    answer = await session.call(f"hiera_plan_{kind}", run_id=run_id, **arguments)
    tell(Decided(DecisionRow.model_validate(answer)))


async def _status(session: Session, run_id: str) -> RunView:
    return RunView.model_validate(await session.call("hiera_run_status", run_id=run_id))


async def _evaluate(session: Session, run_id: str, submissions: Sequence[Submission]) -> tuple[CandidateRow, ...]:
    before = await _status(session, run_id)
    ids = {c.name: c.candidate_id for c in before.candidates}
    best = before.best.candidate_id if before.best else None
    done: list[str] = []
    for part in _parts(submissions):
        candidates = [_submission(c, ids.get(c.parent or "", best)) for c in part]
        answer = await session.work("hiera_candidates_evaluate", run_id=run_id, candidates=candidates)
        done += [row["candidate_id"] for row in answer["results"]]
    rows = {c.candidate_id: c for c in (await _status(session, run_id)).candidates}
    return tuple(rows[i] for i in done)


def _parts(submissions: Sequence[Submission]) -> Iterator[Sequence[Submission]]:
    for first in range(0, len(submissions), MOST_PER_CALL):
        yield submissions[first : first + MOST_PER_CALL]


def _submission(candidate: Submission, parent_id: str | None) -> JsonValue:
    item: dict[str, JsonValue] = {"name": candidate.name, "sources": dict(candidate.sources)}
    if parent_id:
        item["parent_id"] = parent_id
    if candidate.idea:
        item["idea"] = candidate.idea
    return item


def _check_platform(script: Script, target: str) -> None:
    """Refuse candidates of another platform: before any work where the target is known, else when it is."""
    if not is_cpu(target) and not target.startswith("cuda:"):
        return  # `auto`, or a word that the server will refuse
    fits = ".cpp" if is_cpu(target) else ".cu"
    for candidate in (c for one in script.rounds for c in one.candidates):
        for name in candidate.sources:
            if name.endswith(SUFFIXES) and not name.endswith(fits):
                raise RequestError(
                    f"Candidate `{candidate.name}` is a *{Path(name).suffix} file, but the target is {target}.",
                    todo="Choose another target, or leave it out.",
                    valid=[f"*{fits}", MODEL_FILE],
                )


def _fitted(candidate: Submission, contract: ContractView) -> Submission:
    """The candidate with its source file under the contract's name."""
    sources = {contract.source_file if n.endswith(SUFFIXES) else n: text for n, text in candidate.sources.items()}
    return candidate.model_copy(update={"sources": sources})


async def _finish(session: Session, contract: ContractView, run_id: str, started: float) -> RunReport:
    while jobs := (await _status(session, run_id)).open_jobs:  # compute-sanitizer may still look at the best
        await session.ended(jobs[0].job_id)
    answer: Answer = await session.call("hiera_run_finish", run_id=run_id)
    return RunReport(
        contract=contract,
        run=RunView.model_validate(answer["run"]),
        export_dir=answer.get("export_dir") or "",
        exported=tuple(answer.get("files") or ()),
        seconds=time.monotonic() - started,
    )
