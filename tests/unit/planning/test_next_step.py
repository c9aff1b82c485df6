"""The next step alone leads through a whole run."""

import re
from dataclasses import dataclass, field

import pytest

from hiera_mcp.model.plan import DecisionKind
from hiera_mcp.planning.next_step import RunState, after_contract, goal_speedup, next_step

CALL = re.compile(r"(hiera_\w+)\((?:run_id|candidate_id|job_id|contract_id|uri)=[\"']([^\"']+)[\"']")
KINDS: tuple[DecisionKind, ...] = ("space", "direction", "strategy")


@dataclass
class Run:
    """A run that does exactly what the sentence says; `speeds` holds the best speed-up after each submission."""

    speeds: list[float | None]
    goal: float | None = None
    asynchronous: bool = False
    round: int = 1
    left: int = 6
    decided: list[set[DecisionKind]] = field(default_factory=lambda: list[set[DecisionKind]]([set()]))
    job: str = ""
    best: float | None = None
    profiled: bool = False
    finished: bool = False
    calls: list[str] = field(default_factory=list[str])

    def sentence(self) -> str:
        return next_step(
            RunState(
                run_id="r_7",
                round=self.round,
                rounds=3,
                candidates_per_round=6,
                decided=frozenset(self.decided[-1]),
                decided_before=frozenset(kind for round in self.decided[:-1] for kind in round),
                candidates_left=self.left,
                pending_jobs=(self.job,) if self.job else (),
                best_candidate_id="k_3" if self.best else None,
                best_profiled=self.profiled,
                speedup=self.best,
                target_speedup=self.goal,
                finished=self.finished,
            )
        )

    def follow(self) -> None:
        """Make the first call of the sentence."""
        tool, name = CALL.findall(self.sentence())[0]
        self.calls.append(tool.removeprefix("hiera_"))
        getattr(self, "_" + self.calls[-1])(name)

    def _plan(self, kind: DecisionKind) -> None:
        if self.left < 6:
            assert self.round < 3, "no round may be opened after the last one"
            self.round, self.left = self.round + 1, 6
            self.decided.append(set())
        self.decided[-1].add(kind)

    def _plan_space(self, name: str) -> None:
        assert name == "r_7"
        self._plan("space")

    def _plan_direction(self, name: str) -> None:
        self._plan("direction")

    def _plan_strategy(self, name: str) -> None:
        self._plan("strategy")

    def _candidates_evaluate(self, name: str) -> None:
        assert self.decided[-1] == set(KINDS), "nothing is submitted before the round is planned"
        assert self.left > 0
        self.left = 0 if self.best or self.left < 6 else 3
        self.job = "j_1" if self.asynchronous else ""
        found = self.speeds.pop(0)
        self.profiled = self.profiled and found is None
        self.best = max(self.best or 0, found) if found else self.best

    def _job(self, name: str) -> None:
        assert name == "j_1"
        self.job = ""

    def _candidate_profile(self, name: str) -> None:
        assert name == "k_3"
        self.profiled = True

    def _run_finish(self, name: str) -> None:
        self.finished = True


def play(run: Run) -> list[str]:
    for _ in range(60):
        if run.finished:
            return run.calls
        run.follow()
    raise AssertionError(f"no end after {run.calls}")


def test_a_client_that_only_follows_next_step_finishes_a_run() -> None:
    planned = ["plan_space", "plan_direction", "plan_strategy", "candidates_evaluate"]
    profiled = ["candidate_profile", *planned]
    assert play(Run([1.2, 1.5, 1.9])) == [*planned, *profiled, *profiled, "run_finish"]


def test_waiting_for_jobs_comes_before_anything_else() -> None:
    calls = play(Run([1.2, 1.5, 1.9], asynchronous=True))
    assert all(calls[i + 1] == "job" for i, call in enumerate(calls) if call == "candidates_evaluate")


def test_when_all_fail_the_rest_of_the_round_is_used_for_corrections() -> None:
    calls = play(Run([None, 1.2, 1.3, 1.4]))
    assert calls[3:5] == ["candidates_evaluate", "candidates_evaluate"]
    assert calls[-1] == "run_finish"


def test_a_run_in_which_nothing_ever_passes_still_ends() -> None:
    calls = play(Run([None] * 6))
    assert calls.count("candidates_evaluate") == 6
    assert "candidate_profile" not in calls and calls[-1] == "run_finish"


def test_a_reached_goal_ends_the_run_early() -> None:
    assert play(Run([2.5], goal=2.0))[-2:] == ["candidates_evaluate", "run_finish"]


def state(**changes: object) -> RunState:
    values = {"run_id": "r", "round": 1, "rounds": 3, "candidates_per_round": 6, "candidates_left": 6}
    return RunState.model_validate({**values, **changes})


def test_at_the_floor_the_run_is_to_be_finished() -> None:
    sentence = next_step(state(candidates_left=3, best_candidate_id="k", floor_ratio=1.1, speedup=4.0))
    assert "1.10× the floor" in sentence and 'hiera_run_finish(run_id="r")' in sentence


@pytest.mark.parametrize(
    ("decided", "before", "expected"),
    [
        ((), (), "space"),
        (("space",), (), "direction"),
        (("space", "direction"), (), "strategy"),
        (("direction",), (), "space"),  # never decided at all
        (("direction",), KINDS, "strategy"),  # the space is kept
        (("strategy",), KINDS, None),
        ((), KINDS, "space"),
    ],
)
def test_a_later_round_may_keep_earlier_decisions(
    decided: tuple[str, ...], before: tuple[str, ...], expected: str | None
) -> None:
    sentence = next_step(state(decided=decided, decided_before=before))
    found = CALL.findall(sentence)[0][0]
    assert found == (f"hiera_plan_{expected}" if expected else "hiera_candidates_evaluate")


def test_the_last_round_offers_the_rest_and_the_end() -> None:
    sentence = next_step(state(round=3, candidates_left=2, best_candidate_id="k", speedup=1.1))
    assert "up to 2 more" in sentence and "hiera_run_finish" in sentence


def test_where_nothing_can_run_nobody_is_told_to_correct_candidates() -> None:
    sentence = next_step(state(candidates_left=3, compiled_only=True))
    assert "nothing can run on this host" in sentence and "correct" not in sentence


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("at least 2x over eager", 2.0),
        ("1.5 × faster", 1.5),
        ("a 3-fold gain", 3.0),
        ("as fast as possible", None),
        ("fast for 1024x1024 inputs", None),
        ("the 512 x 512 case", None),
        ("0x", None),
        ("", None),
    ],
)
def test_a_goal_in_words_may_name_a_speedup(goal: str, expected: float | None) -> None:
    assert goal_speedup(goal) == expected


def test_a_finished_run_points_to_its_trajectory() -> None:
    assert "hiera://runs/r/trajectory" in next_step(state(finished=True))


def test_a_contract_leads_to_a_run() -> None:
    assert 'hiera_run_start(contract_id="c_1")' in after_contract("c_1")
