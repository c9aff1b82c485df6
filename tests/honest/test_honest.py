"""Each honest candidate in `candidates`, however unusual, must pass. Those in `cuda` need a GPU: see tests/gpu."""

from pathlib import Path
from typing import Any

import pytest
from candidate_files import CandidateFile, candidate_files

CANDIDATES = Path(__file__).parent / "candidates"


@pytest.mark.parametrize("candidate", candidate_files([CANDIDATES], ".cpp", ".py"), ids=lambda c: c.path.stem)
def test_the_honest_candidate_passes(workshop: Any, candidate: CandidateFile) -> None:
    contract = workshop.task(candidate.facts["task"], candidate.precision)
    result = workshop.evaluate(contract, candidate.code, candidate.python, candidate.space)
    assert result.status == "passed", result.reason
    assert result.timing is not None and result.timing.candidate.median > 0
