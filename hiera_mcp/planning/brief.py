"""The brief for OA: what the writer of the next candidates must know, as a short text."""

import re
from collections.abc import Sequence

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.evaluation import Status
from hiera_mcp.model.plan import Strategy
from hiera_mcp.model.space import MODEL_FILE, is_cpu, source_file
from hiera_mcp.planning.evidence import Evidence, Outcome
from hiera_mcp.planning.parents import select_parents

FAILURES_SHOWN = 6
NOTES_SHOWN = 8
LINE = 240
"""Characters of one line of what the server says; the contract and the log hold the rest."""
MOST_CHARACTERS = 8000
"""Of a brief besides the strategy itself: about 2,000 tokens."""

REMEDIES: dict[Status, str] = {
    Status.INVALID_SPACE: "stay inside the decided space, or plan a larger one",
    Status.COMPILE_ERROR: "compile with hiera_candidate_check before spending a candidate",
    Status.CRASH: "check indices against the shapes in contract.h, and every return code",
    Status.TIMEOUT: "look for endless loops and barriers that not all threads reach",
    Status.RESOURCE_LIMIT: "ask for less memory or fewer threads",
    Status.WRONG_OUTPUT: "compare index arithmetic and reduction order with the reference; mind the borders",
    Status.SUSPECT: "finish all work before hiera_run returns to the stream, and write every output in each call",
}


class Failure(Model):
    """One cause of failure in this run, with how often it was seen."""

    status: Status
    cause: Text
    count: int
    candidates: tuple[str, ...]
    remedy: Text
    fixed_in: str = ""
    """A candidate that was derived from one of these and passed, with its idea."""


def failures(outcomes: Sequence[Outcome]) -> tuple[Failure, ...]:
    """Failures of the run with equal causes joined, the most frequent first."""
    groups: dict[tuple[Status, str], list[Outcome]] = {}
    for outcome in outcomes:
        if isinstance(outcome.status, Status) and not outcome.passed:
            groups.setdefault((outcome.status, _pattern(outcome.reason)), []).append(outcome)
    rows = [_failure(status, group, outcomes) for (status, _), group in groups.items()]
    return tuple(sorted(rows, key=lambda f: -f.count))


def render_brief(contract: Contract, evidence: Evidence, strategy: Strategy, left: int) -> str:
    """The brief in Markdown. `left` is the number of candidates that the round still takes."""
    rules = _standing(contract, strategy) if evidence.switches.contract_files else [_space_rule(strategy)]
    sections = (
        ("Task", _task(contract)),
        ("Parents", _parents(evidence)),
        (f"Strategy: {strategy.title}", _strategy(strategy)),
        ("Constraints", _bullets([*strategy.constraints, *rules])),
        ("Failures to avoid", _failures(evidence)),
        (f"The next candidates (up to {left})", _diversity(left, strategy, select_parents(evidence.outcomes))),
        ("Binding", _binding(contract, strategy)),
    )
    return "\n\n".join(f"## {title}\n{text}" for title, text in sections)


def _failure(status: Status, group: list[Outcome], outcomes: Sequence[Outcome]) -> Failure:
    ids = {o.candidate_id for o in group}
    fixed = next((o for o in outcomes if o.passed and o.parent_id in ids), None)
    return Failure(
        status=status,
        cause=_one_line(group[-1].reason) or status.value,
        count=len(group),
        candidates=tuple(o.name for o in group),
        remedy=REMEDIES[status],
        fixed_in=""
        if fixed is None
        else f"{fixed.name}{f' ({_one_line(fixed.idea, LINE // 2)})' if fixed.idea else ''}",
    )


def _pattern(text: str) -> str:
    """Numbers and quoted names do not make a different cause."""
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]?\d+)?|'[^']*'|\"[^\"]*\"", "#", text.lower())


def _task(contract: Contract) -> str:
    floor = contract.floor
    return (
        f"{contract.task.name} on {contract.target}, {contract.precision}. "
        f"Floor {floor.seconds * 1e6:.3g} µs a call, bound by {floor.bound} ({_one_line(floor.arithmetic)})."
    )


def _parents(evidence: Evidence) -> str:
    rows = [_parent(o) for o in select_parents(evidence.outcomes)]
    if not rows:
        return "None has passed yet: start from the contract's skeleton and get one right first."
    return _bullets([*rows, *_profiled(evidence)])


def _profiled(evidence: Evidence) -> list[str]:
    """What the profile of the best one shows; else how to get one."""
    if evidence.profile is None:
        return [f"No profile: {evidence.profile_reason}."]
    hot = next((line for launch in evidence.profile.launches for line in launch.lines), None)
    where = f" Most samples: {hot.where} `{hot.text.strip()}`." if hot else ""
    return [_one_line(f"Profile of the best: {evidence.profile.summary}{where}", 2 * LINE)]


def _parent(outcome: Outcome) -> str:
    speedup = outcome.speedup
    measured = f"{speedup.median:.2f}× [{speedup.low:.2f}, {speedup.high:.2f}]" if speedup else "not timed"
    ratio = f", {outcome.floor_ratio:.2f}× the floor" if outcome.floor_ratio is not None else ""
    idea = f": {_one_line(outcome.idea)}" if outcome.idea else ""
    return f"{outcome.name} ({outcome.candidate_id}, {outcome.space}) {measured}{ratio}{idea}"


def _strategy(strategy: Strategy) -> str:
    steps = "\n".join(f"{i}. {step}" for i, step in enumerate(strategy.steps, 1))
    numbers = "".join(f"\n- {name} = {value}" for name, value in strategy.parameters.items())
    change = f" ({strategy.predicted_change.rstrip('.')})" if strategy.predicted_change else ""
    moves = f"\nMust move: {strategy.predicted_metric}{change}." if strategy.predicted_metric else ""
    return steps + numbers + moves


def _space_rule(strategy: Strategy) -> str:
    return f"Space {strategy.space}: anything outside it is refused."


def _standing(contract: Contract, strategy: Strategy) -> list[str]:
    tolerance = contract.tolerance
    tf32 = "TF32 is allowed" if tolerance.allow_tf32 else "TF32 is not allowed"
    return [
        _space_rule(strategy),
        f"Precision {contract.precision}; {tf32}; outputs are compared at rtol {tolerance.rtol:g}, atol {tolerance.atol:g}.",
        "Every call computes every output from its inputs: nothing is kept between calls.",
        *(_one_line(note) for note in contract.notes[:NOTES_SHOWN]),
        *_more_notes(contract),
    ]


def _more_notes(contract: Contract) -> list[str]:
    left = len(contract.notes) - NOTES_SHOWN
    return [f"{left} more: hiera://contracts/{contract.id}/lists/notes"] if left > 0 else []


def _failures(evidence: Evidence) -> str:
    rows = [_warning(f) for f in failures(evidence.outcomes)[:FAILURES_SHOWN]]
    return _bullets(rows) if rows else "None so far."


def _warning(f: Failure) -> str:
    fix = f"fixed in {f.fixed_in}" if f.fixed_in else f.remedy
    return f"{f.status} ×{f.count}: {f.cause} → {fix}"


def _diversity(left: int, strategy: Strategy, parents: Sequence[Outcome]) -> str:
    """Which part each of the candidates plays; those that the round has no place for are left out, the last ones first."""
    if left <= 1:
        return "One candidate: the strategy as it stands, with the safest parameters."
    numbers = _one_line(", ".join(strategy.parameters) or "tile, unroll, threads", LINE // 2)
    other = f"starts from {parents[1].name}" if len(parents) > 1 else "is written anew, not edited"
    parts = [
        "One follows the strategy with the safest parameters, so that the round has a correct base.",
        f"Up to {max(1, left // 2)} vary one number each ({numbers}), so that the cause of a difference is known.",
        "One does without the step that is least sure to pay.",
        f"One {other}.",
        "One differs in structure: another split of the work, another place for the data.",
    ]
    return _bullets([*parts[:left], "No two differ in nothing that a profile could show."])


def _binding(contract: Contract, strategy: Strategy) -> str:
    cpu = is_cpu(contract.target)
    stream = "" if cpu else ", cudaStream_t stream"
    rule = "" if cpu else " Launch on the given stream; never synchronise or allocate in hiera_run."
    model = f" (or {MODEL_FILE} with ModelNew as well)" if strategy.space.allows_pytorch else ""
    return (
        f"Write {source_file(contract.target)}{model}; include contract.h. Implement "
        f"`int hiera_run(const hiera_inputs*, const hiera_params*, const hiera_outputs*, void* workspace{stream})`; "
        f"optional: `hiera_workspace_bytes`, `hiera_prepare` (untimed; parameters only). Return 0 for success.{rule}"
    )


def _bullets(rows: Sequence[str]) -> str:
    return "\n".join(f"- {row}" for row in rows)


def _one_line(text: str, limit: int = LINE) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
