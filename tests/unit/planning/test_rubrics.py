"""Rubrics are data with one validator, and code and data agree."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.errors import RequestError
from hiera_mcp.model.knowledge import Condition, Entry, Match, Reference
from hiera_mcp.model.plan import DecisionKind, OptionScore
from hiera_mcp.model.profile import DirectionSigns, Metric, Occupancy, Profile
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.planning.direction import DIRECTION_CRITERIA, score_directions
from hiera_mcp.planning.evidence import Evidence, Outcome
from hiera_mcp.planning.gates import DIRECTION_GATES, DIRECTION_REASONS, ENTRY_GATES, SPACE_GATES
from hiera_mcp.planning.rubrics import RUBRICS, load_rubric, parse_rubric, rubric_text
from hiera_mcp.planning.signals import CONFLICTS, COUNTERS, WAVEFRONTS
from hiera_mcp.planning.space import SPACE_CRITERIA, score_spaces
from hiera_mcp.planning.strategy import STRATEGY_CRITERIA, score_entries

METRICS = (*COUNTERS.values(), *CONFLICTS, *WAVEFRONTS)
FUNCTIONS = {"space": SPACE_CRITERIA, "direction": DIRECTION_CRITERIA, "strategy": STRATEGY_CRITERIA}
GATES = {"space": [*SPACE_GATES], "direction": [*DIRECTION_GATES, *DIRECTION_REASONS], "strategy": [*ENTRY_GATES]}


@pytest.mark.parametrize("kind", RUBRICS)
def test_every_criterion_has_a_function_and_every_function_a_criterion(kind: DecisionKind) -> None:
    assert [c.id for c in load_rubric(kind).criteria] == list(FUNCTIONS[kind])


@pytest.mark.parametrize("kind", RUBRICS)
def test_every_gate_of_a_rubric_is_enforced_in_code(kind: DecisionKind) -> None:
    assert [g.id for g in load_rubric(kind).gates] == GATES[kind]


@pytest.mark.parametrize("kind", RUBRICS)
def test_gates_that_forbid_and_rules_that_ask_are_told_apart(kind: DecisionKind) -> None:
    asking = {g.id for g in load_rubric(kind).gates if g.effect == "needs_reason"}
    assert asking == (set(DIRECTION_REASONS) if kind == "direction" else set())


@pytest.fixture
def rich(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome], dataflow: Callable[..., dict[str, Any]]
) -> list[Evidence]:
    """Evidence in which every signal can be read, on both platforms, bound by arithmetic and by memory, with counters,
    without them, and without any profile."""
    profile = Profile(
        bottleneck="memory",
        summary="s",
        metrics=tuple(Metric(name=name, value=1.0, unit="", origin="counter") for name in METRICS),
        occupancy=(Occupancy(kernel="k", block_threads=256, percent=50, limiter="registers"),),
        instruction_mix={"fma": 10, "load": 5, "wide_load": 2, "store": 3, "branch": 2, "barrier": 1},
        kernels=(),
        directions=tuple(DirectionSigns(direction=d, score=2) for d in Direction),
    )
    built = [{"kernel": "k", "registers": 40, "spill_store_bytes": 0, "spill_load_bytes": 0, "shared_bytes": 0}]
    work = (("gemm", 0.5, 2), ("conv", 0.2, 1), ("elementwise", 0.2, 2), ("reduction", 0.1, 1))
    low = profile.model_copy(
        update={
            "directions": (),
            "bottleneck": "latency",
            "occupancy": (profile.occupancy[0].model_copy(update={"percent": 9}),),
        }
    )
    return [
        evidence(
            [outcome("a", 2.0, space=space, floor_ratio=2.0, kernels=built, sources={"a.cu": "int x;"})],
            target=target,
            work=work,
            profile=found,
            tensor_cores=True,
            intensity=intensity,
            dataflow=dataflow(depth=5, chains=((3, 1, 0.5),), longest=1 << 20, covered=0.9),
        )
        for target, space, intensity, found in (
            ("cuda:sm_80", Space.CUDA, 600, profile),
            ("cuda:sm_80", Space.CUDA, 0.25, low),
            ("cpu", Space.CPP, 600, profile),
            ("cuda:sm_80", Space.CUDA, 600, None),
        )
    ]


@pytest.mark.parametrize(("kind", "score"), [("space", score_spaces), ("direction", score_directions)])
def test_a_criterion_reads_only_the_evidence_that_its_rubric_declares(
    kind: DecisionKind, score: Callable[[Evidence], tuple[OptionScore, ...]], rich: list[Evidence]
) -> None:
    seen = {c.criterion: set(c.evidence) for e in rich for option in score(e) for c in option.criteria}
    for criterion in load_rubric(kind).criteria:
        assert seen[criterion.id] <= set(criterion.reads)


@pytest.mark.parametrize(("kind", "score"), [("space", score_spaces), ("direction", score_directions)])
def test_every_declared_signal_is_read_for_some_option(
    kind: DecisionKind, score: Callable[[Evidence], tuple[OptionScore, ...]], rich: list[Evidence]
) -> None:
    seen: dict[str, set[str]] = {}
    for option in (o for e in rich for o in score(e)):
        for c in option.criteria:
            seen.setdefault(c.criterion, set()).update(c.evidence)
    for criterion in load_rubric(kind).criteria:
        assert set(criterion.reads) <= seen[criterion.id] | {"tensor_core_legal"}


def test_every_score_lies_on_the_scale_and_is_explained(rich: list[Evidence]) -> None:
    for e in rich:
        for option in (*score_spaces(e), *score_directions(e)):
            assert 0 <= option.total <= 4
            for c in option.criteria:
                assert c.score is None or 0 <= c.score <= 4, c
                assert c.explanation.endswith(".")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("      3: From 5 %", "      7: From 5 %", "anchors"),
        ("weight: 3", "weight: 0", "weight"),
        ("[fusion_ratio,", "[moon_phase,", "moon_phase"),
        ("gate: library_installed", "gate: no_such_gate", "no_such_gate"),
        ("id: fusion_gain", "id: contraction_coverage", "share an id"),
        ("kind: space", "kind: colour", "kind"),
        ("kind: space", "kind: space\nsurprise: 1", "surprise"),
    ],
)
def test_a_broken_rubric_is_refused_with_the_place_named(old: str, new: str, says: str) -> None:
    assert old in rubric_text("space")
    with pytest.raises(RequestError, match=says):
        parse_rubric(rubric_text("space").replace(old, new, 1))


def test_yaml_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(RequestError, match="not a rubric"):
        parse_rubric("criteria: [unclosed")


def test_a_changed_weight_changes_the_total(evidence: Callable[..., Evidence]) -> None:
    e = evidence(work=(("gemm", 1.0, 1),), intensity=600)
    heavier = parse_rubric(rubric_text("space").replace("weight: 3", "weight: 10", 1))
    assert score_spaces(e, heavier)[0].total < score_spaces(e)[0].total


def test_a_condition_on_an_unknown_signal_is_refused() -> None:
    with pytest.raises(ValueError, match="valid: platform"):
        Condition(signal="moon_phase", op=">", value=1)


def test_the_strategy_rubric_scores_an_entry_without_candidates(evidence: Callable[..., Evidence]) -> None:
    entry = Entry(
        id="e",
        title="E",
        direction=Direction.PARALLELISM,
        spaces=(Space.CUDA,),
        archs=("cuda",),
        operators=("elementwise",),
        signature=(Condition(signal="waves", op="<", value=1), Condition(signal="platform", op="==", value="cuda")),
        steps=("do",),
        must_move="waves",
        expected="more",
        cost="low",
        sources=(Reference(title="t", url="https://example.org"),),
    )
    e = evidence(space=Space.CUDA, direction=Direction.PARALLELISM)
    (option,) = score_entries(e, [Match(entry=entry, score=1, why="w")])
    signature = next(c for c in option.criteria if c.criterion == "signature_match")
    assert signature.score == 3.0  # one of two holds, the other cannot be read and counts half
    assert signature.evidence == {"waves": None, "platform": "cuda"}
