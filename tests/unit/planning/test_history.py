"""When has a direction won or lost a round?"""

from collections.abc import Callable

from hiera_mcp.model.space import Direction
from hiera_mcp.planning.evidence import Evidence, Outcome
from hiera_mcp.planning.history import lost_rounds, record_of_direction, won_rounds

MEM, PAR = Direction.MEMORY_TRANSACTIONS, Direction.PARALLELISM


def test_the_first_round_is_won_by_beating_eager_pytorch(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    assert won_rounds(evidence([outcome("a", 1.5)]), MEM) == (1,)
    assert lost_rounds(evidence([outcome("a", 0.8)]), MEM) == (1,)


def test_a_later_round_is_won_only_by_beating_what_was_there(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    before = outcome("a", 2.0, direction=PAR)
    e = evidence([before, outcome("b", 2.01, round=2), outcome("c", 3.0, round=3)])
    assert (lost_rounds(e, MEM), won_rounds(e, MEM)) == ((2,), (3,))


def test_a_round_of_failures_is_lost(evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]) -> None:
    e = evidence([outcome("a", status="crash"), outcome("b", status="compile_error")])
    assert lost_rounds(e, MEM) == (1,)


def test_a_round_without_a_verdict_is_neither_won_nor_lost(
    evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]
) -> None:
    e = evidence([outcome("a", status="pending"), outcome("b", status="not_run")])
    assert (won_rounds(e, MEM), lost_rounds(e, MEM)) == ((), ())


def test_the_record_counts_verdicts_only(evidence: Callable[..., Evidence], outcome: Callable[..., Outcome]) -> None:
    e = evidence([outcome("a", 2.0), outcome("b", status="crash"), outcome("c", status="pending")])
    record = record_of_direction(e, MEM)
    assert (record.attempts, record.passed) == (2, 1)
    assert record.as_evidence()["best_speedup"] == 2.0
