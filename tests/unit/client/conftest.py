"""Folders as users might bring them."""

from collections.abc import Callable
from pathlib import Path

import pytest

Make = Callable[[dict[str, str]], Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes files by relative path into a folder `mytask`, and returns it."""

    def write(files: dict[str, str]) -> Path:
        root = tmp_path / "mytask"
        root.mkdir()
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    return write
