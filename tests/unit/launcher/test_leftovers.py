"""What a box left is read with suspicion."""

import os
from pathlib import Path

import pytest

from hiera_mcp.sandbox.child import leftovers
from hiera_mcp.sandbox.child.leftovers import read_result


def test_a_regular_file_is_read(tmp_path: Path):
    (tmp_path / "result.json").write_bytes(b"{}")
    assert read_result(tmp_path / "result.json") == b"{}"


def test_a_link_is_not_followed(tmp_path: Path):
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "result.json").symlink_to(tmp_path / "secret")
    assert read_result(tmp_path / "result.json") is None


def test_a_pipe_does_not_block_the_reader(tmp_path: Path):
    os.mkfifo(tmp_path / "result.json")
    assert read_result(tmp_path / "result.json") is None


def test_a_folder_and_a_missing_file_are_no_result(tmp_path: Path):
    (tmp_path / "result.json").mkdir()
    assert read_result(tmp_path / "result.json") is None
    assert read_result(tmp_path / "absent.json") is None


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(leftovers, "RESULT_BYTES", 1000)
    (tmp_path / "result.json").write_bytes(b"x" * 1001)
    assert read_result(tmp_path / "result.json") is None
