"""The longest path of dependent operators, on hand-made traces."""

from hiera_mcp.contracts.depth import depth_of
from hiera_mcp.model.work import Trace, TracedCall, TracedValue


def _trace(*edges: tuple[tuple[int, ...], tuple[int, ...]]) -> Trace:
    values = 1 + max((v for reads, writes in edges for v in reads + writes), default=-1)
    return Trace(
        inputs=(),
        scalars=(),
        forward_order=(),
        outputs=(),
        parameters=(),
        operators=(),
        calls=tuple(TracedCall(operator=0, reads=reads, writes=writes) for reads, writes in edges),
        values=(TracedValue(nbytes=4),) * values,
        trivial_outputs=None,
    )


def test_a_trace_without_calls_has_depth_zero() -> None:
    assert depth_of(_trace()) == 0


def test_dependent_calls_add_up() -> None:
    assert depth_of(_trace(((0,), (1,)), ((1,), (2,)), ((2,), (3,)))) == 3


def test_independent_branches_count_once_and_their_join_waits_for_the_longer() -> None:
    assert depth_of(_trace(((0,), (1,)), ((0,), (2,)), ((2,), (3,)), ((1, 3), (4,)))) == 3


def test_a_call_that_reads_nothing_starts_a_path() -> None:
    assert depth_of(_trace(((), (0,)), ((0,), (1,)))) == 2
