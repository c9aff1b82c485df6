"""How many operators have to follow one another: the longest path through the dataflow of a trace."""

from hiera_mcp.model.work import Trace


def depth_of(trace: Trace) -> int:
    """Launched operators on the longest path of dependent calls; linear in the calls, 0 without any.

    Calls come in the order of execution, so one pass suffices. That a write waits for earlier readers of the same
    memory does not count: a candidate may keep both values.
    """
    level = [0] * len(trace.values)
    for call in trace.calls:
        own = 1 + max((level[v] for v in call.reads), default=0)
        for v in call.writes:
            level[v] = own
    return max(level, default=0)
