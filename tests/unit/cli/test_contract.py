"""Writing a contract's files."""

from pathlib import Path

import pytest

from hiera_mcp.cli.contract import write
from hiera_mcp.errors import RequestError


def test_the_files_are_written_into_a_new_folder(tmp_path: Path) -> None:
    paths = write({"contract.h": "a", "../x.cpp": "b"}, tmp_path / "new" / "folder")
    assert [p.relative_to(tmp_path / "new" / "folder").as_posix() for p in paths] == ["contract.h", "x.cpp"]
    assert paths[0].read_text() == "a"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(RequestError, match=r"cannot be written to .*taken.*--out"):
        write({"contract.h": "a"}, tmp_path / "taken")
