"""What the files of CUDA candidates say of themselves, read where no GPU can judge them."""

from pathlib import Path

import pytest
from candidate_files import CandidateFile, candidate_files

from hiera_mcp.model.evaluation import Status

TESTS = Path(__file__).parents[1]
HONEST = candidate_files([TESTS / "honest" / "cuda"], ".cu", ".py")
DISHONEST = candidate_files(sorted((TESTS / "exploits").glob("cuda_*")), ".cu")
KEYS = {"task", "space", "precision", "tf32", "needs", "status", "seen"}


@pytest.mark.parametrize("candidate", [*HONEST, *DISHONEST], ids=lambda c: c.name)
def test_a_candidate_names_a_task_that_exists_and_only_keys_that_are_known(candidate: CandidateFile) -> None:
    assert (TESTS / "tasks" / f"{candidate.facts['task']}.py").is_file()
    assert set(candidate.facts) <= KEYS
    assert candidate.facts.get("space", "libraries") == "libraries"
    assert candidate.facts.get("precision", "float32") == candidate.precision


def test_an_exploit_or_a_fault_says_how_it_must_end_and_what_must_be_seen() -> None:
    for candidate in DISHONEST:
        assert Status.PASSED not in candidate.statuses, candidate.name
        assert candidate.facts["seen"], candidate.name


def test_an_honest_candidate_expects_nothing_but_to_pass() -> None:
    assert not [c.name for c in HONEST if "status" in c.facts]
