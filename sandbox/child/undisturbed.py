"""Whether the reference runs slower beside the candidate's process than before that held anything of the candidate.

On a GPU two processes take turns. A kernel that the candidate leaves running slows the reference down and so flatters the
candidate; holding its processes still does not stop what was launched already. On `cpu` nothing runs while they are held.
"""

import time
from collections.abc import Sequence

from hiera_mcp.sandbox.child.reference import Reference
from hiera_mcp.sandbox.child.stopwatch import CudaStopwatch, HostStopwatch
from hiera_mcp.sandbox.child.timing import median
from hiera_mcp.sandbox.child.workbench import Workbench

WARM_UP_S = 0.1
"""A GPU at rest has low clocks; and the first calls of a reference choose algorithms."""
CALLS, FEW_CALLS = 9, 1
SLOW_S = 0.2
"""A reference that takes longer is called once more only."""
RELATIVE, ABSOLUTE_S = 0.25, 5e-6
"""Allowed for the clocks of a GPU, which change by themselves."""


def undisturbed(reference: Reference, bench: Workbench, watch: HostStopwatch | CudaStopwatch, case: int) -> float:
    """Median seconds of cold calls of the reference in the rhythm of the rounds: each after a request to the runner, which
    calls nothing, and on new inputs. After a wait, and on another process's turn, a call takes longer than in a loop.

    Raises:
        ReferenceFailed: it raises.
        CandidateFailure, RunnerLost, RunnerTimeout: see Peer.ask.
    """

    def call() -> float:
        bench.rehearse(case, watch.flush_by_runner)
        return reference.timed(case, reference.draw_inputs(case), lambda run: watch.time(run, flush=True))[1]

    start = time.perf_counter()
    seconds = call()
    while time.perf_counter() - start < WARM_UP_S:
        seconds = call()
    return median([call() for _ in range(CALLS if seconds < SLOW_S else FEW_CALLS)])


def slowed(before: float, references: Sequence[float]) -> str:
    """What is wrong with the reference's times beside the candidate, in words; empty where nothing is.

    Args:
        before: seconds, of `undisturbed`.
        references: of the rounds, two each; a round's ratio rests on their sum.
    """
    beside = median([sum(references[n : n + 2]) / 2 for n in range(0, len(references), 2)])
    if beside <= before * (1 + RELATIVE) + ABSOLUTE_S:
        return ""
    return (
        f"work was left running: by the judge's clock the reference took {beside * 1e6:.4g} us beside the candidate, and "
        f"{before * 1e6:.4g} us before the candidate was loaded"
    )
