"""Each honest candidate in `candidates`, however unusual, must pass."""

from pathlib import Path
from typing import Any

import pytest

CANDIDATES = Path(__file__).parent / "candidates"


def task_of(path: Path) -> str:
    return path.read_text().splitlines()[1].partition("task: ")[2]


def candidates() -> list[Path]:
    """Those on one task after another, so that its judge stays warm."""
    return sorted(CANDIDATES.iterdir(), key=lambda p: (task_of(p), p))


@pytest.mark.parametrize("path", candidates(), ids=lambda p: p.stem)
def test_the_honest_candidate_passes(workshop: Any, path: Path) -> None:
    result = workshop.evaluate(workshop.task(task_of(path)), path.read_text(), python=path.suffix == ".py")
    assert result.status == "passed", result.reason
    assert result.timing is not None and result.timing.candidate.median > 0
