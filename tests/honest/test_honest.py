"""Each honest candidate in `candidates`, however unusual, must pass. Those in `cuda` need a GPU: see tests/gpu."""

from pathlib import Path
from typing import Any

import pytest
from candidate_files import CandidateFile, candidate_files
from workshops import chosen

pytestmark = pytest.mark.alone
CANDIDATES = Path(__file__).parent / "candidates"


@pytest.fixture(scope="module", autouse=True)
def compiled(workshop: Any, request: pytest.FixtureRequest) -> None:
    """What will be tested, compiled on all processors at once: evaluations find it in the cache."""
    candidates = [c for c in chosen(request, "candidate") if not c.python]
    workshop.check([(workshop.task(c.facts["task"], c.precision), c.code, c.space) for c in candidates])


@pytest.mark.parametrize("candidate", candidate_files([CANDIDATES], ".cpp", ".py"), ids=lambda c: c.path.stem)
def test_the_honest_candidate_passes(workshop: Any, candidate: CandidateFile) -> None:
    contract = workshop.task(candidate.facts["task"], candidate.precision)
    result = workshop.evaluate(contract, candidate.code, candidate.python, candidate.space)
    assert result.status == "passed", result.reason
    assert result.timing is not None and result.timing.candidate.median > 0
