"""The next tool call, as a sentence with concrete ids. Enough to finish a run for a client that read nothing else."""

import re

from pydantic import Field

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.plan import DecisionKind

ORDER: tuple[DecisionKind, ...] = ("space", "direction", "strategy")
_GOAL = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:[x×](?![\w×]|\s*\d)|-?fold\b)", re.IGNORECASE)
AT_THE_FLOOR = 1.15
"""Ratio of time to floor below which a run may stop (a floor is uncertain by about 5 %)."""


class RunState(Model):
    """Where a run stands, as far as the next step depends on it."""

    run_id: Text
    round: int
    rounds: int
    candidates_per_round: int
    decided: frozenset[DecisionKind] = frozenset()
    """Kinds decided in the current round."""
    decided_before: frozenset[DecisionKind] = frozenset()
    """Kinds decided in an earlier round."""
    skipped: frozenset[DecisionKind] = frozenset()
    """Kinds that this run does not decide."""
    candidates_left: int
    """Of the current round."""
    pending_jobs: tuple[str, ...] = ()
    sanitizing: tuple[str, ...] = ()
    """Jobs in which compute-sanitizer looks at the best; only the end of the run waits for them."""
    without_result: tuple[str, ...] = ()
    """Names of this round's candidates that have no result and will not get one by waiting."""
    best_candidate_id: str | None = None
    best_profiled: bool = False
    speedup: float | None = None
    """Lower bound of the best candidate's speed-up."""
    floor_ratio: float | None = None
    """Time of the best candidate / floor."""
    target_speedup: float | None = Field(default=None, gt=0)
    """Speed-up that the run's goal asks for."""
    compiled_only: bool = False
    """Whether this round's candidates were built but cannot run on this host."""
    finished: bool = False

    @property
    def planned(self) -> tuple[DecisionKind, ...]:
        """The kinds that each round decides, in order."""
        return tuple(kind for kind in ORDER if kind not in self.skipped)

    @property
    def submitted(self) -> bool:
        """Whether this round has candidates."""
        return self.candidates_left < self.candidates_per_round


def next_step(state: RunState) -> str:
    """What to call next in this run."""
    if state.finished:
        return (
            f'The run is finished. hiera_artifact_read(uri="hiera://runs/{state.run_id}/trajectory") shows all of it.'
        )
    if state.pending_jobs:
        return f'Work is under way: hiera_job(job_id="{state.pending_jobs[0]}", action="wait").'
    return _resubmit(state) + _sanitized(state) + _onward(state)


def _sanitized(state: RunState) -> str:
    """What to wait for before the run can be finished; empty where the round goes on."""
    if not state.sanitizing or not state.submitted:
        return ""
    if not (state.compiled_only or state.round >= state.rounds or _goal(state)):
        return ""
    return (
        "compute-sanitizer is looking at the best candidate, which may cost it its place: "
        f'hiera_job(job_id="{state.sanitizing[0]}", action="wait"). Then: '
    )


def _onward(state: RunState) -> str:
    if state.submitted and (reached := _goal(state)):
        return f'{reached}: hiera_run_finish(run_id="{state.run_id}") exports the winner.'
    if state.submitted:
        return _after_candidates(state)
    kind = _undecided(state)
    return _plan(state, kind) if kind else _first_candidates(state)


def goal_speedup(goal: str) -> float | None:
    """The speed-up that a goal asks for, as `2x`, `1.5 ×` or `3-fold`; None when it names none."""
    found = _GOAL.search(goal)
    return float(found[1]) if found and float(found[1]) > 0 else None


def after_contract(contract_id: str) -> str:
    """What to call once a contract is built."""
    return f'Start a run: hiera_run_start(contract_id="{contract_id}").'


def _goal(state: RunState) -> str:
    if state.target_speedup is not None and state.speedup is not None and state.speedup >= state.target_speedup:
        return f"The goal of {state.target_speedup:g}× is reached ({state.speedup:.2f}× at least)"
    if state.floor_ratio is not None and state.floor_ratio < AT_THE_FLOOR:
        return f"The best candidate takes {state.floor_ratio:.2f}× the floor, so nothing is left to gain"
    return ""


def _resubmit(state: RunState) -> str:
    """How candidates that lost their evaluation get a result; empty when there are none."""
    if not state.without_result:
        return ""
    call = f'hiera_candidates_evaluate(run_id="{state.run_id}", candidates=[...])'
    names = ", ".join(state.without_result)
    return (
        f"No result yet for {names}: {call} with the same names and sources takes them up again in their places. Else: "
    )


def _undecided(state: RunState) -> DecisionKind | None:
    """In order; a kind decided before may be kept once this round has decided a later one."""
    planned = state.planned
    last = max((planned.index(kind) for kind in state.decided if kind in planned), default=-1)
    for i, kind in enumerate(planned):
        if kind not in state.decided and (i > last or kind not in state.decided_before):
            return kind
    return None


def _plan(state: RunState, kind: DecisionKind) -> str:
    call = f'hiera_plan_{kind}(run_id="{state.run_id}")'
    if kind == "strategy":
        return (
            f"Plan the {kind}: {call} shows techniques; record your own with `strategy` and `reason`, "
            'or the recommended one with choice="recommended".'
        )
    return (
        f"Decide the {kind}: {call} shows evidence and recommendation; the same call with "
        '`choice` (and `reason`, when you differ) records it, choice="recommended" takes the recommendation.'
    )


def _first_candidates(state: RunState) -> str:
    return (
        f'Write candidates: hiera_candidates_evaluate(run_id="{state.run_id}", candidates=[...]) '
        f"with up to {state.candidates_left} of them; "
        f'hiera_candidate_check(run_id="{state.run_id}", name=..., sources=...) compiles one without spending it.'
    )


def _after_candidates(state: RunState) -> str:
    finish = f'hiera_run_finish(run_id="{state.run_id}") exports the winner'
    more = f'hiera_candidates_evaluate(run_id="{state.run_id}", candidates=[...])'
    if state.compiled_only:
        return (
            f"Candidates are built and space-checked, but nothing can run on this host: {more} checks more, {finish}."
        )
    if state.candidates_left > 0 and state.best_candidate_id is None:
        return f"No candidate has passed: correct them and call {more}; up to {state.candidates_left} are left in this round."
    if state.round >= state.rounds:
        rest = f"{more} takes up to {state.candidates_left} more, or " if state.candidates_left > 0 else ""
        return f"This is the last round: {rest}{finish}."
    return _open_next_round(state)


def _open_next_round(state: RunState) -> str:
    rest = f" ({state.candidates_left} candidates of round {state.round} are unused)" if state.candidates_left else ""
    plan = f'hiera_plan_{state.planned[0]}(run_id="{state.run_id}")'
    if state.best_candidate_id is not None and not state.best_profiled:
        return (
            f'Profile the best candidate: hiera_candidate_profile(candidate_id="{state.best_candidate_id}"); '
            f"then plan round {state.round + 1} of {state.rounds} with {plan}{rest}."
        )
    return f"Plan round {state.round + 1} of {state.rounds}{rest}: {plan} shows evidence; recording it opens the round."
