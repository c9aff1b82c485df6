"""What hiera_contract_build takes, and how a contract is shown."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hiera_mcp.errors import RequestError
from hiera_mcp.tools.contract_build import MAX_SOURCE, read_task, resolve_target


def test_a_file_gives_the_task_its_name(tmp_path: Path) -> None:
    path = tmp_path / "softmax.py"
    path.write_text("class Model: ...")
    task = read_task(None, str(path), None)
    assert (task.name, task.source) == ("softmax", "class Model: ...")
    assert read_task(None, str(path), "other").name == "other"


def test_a_text_without_a_name_gets_one_that_depends_on_it() -> None:
    assert read_task("a", None, None).name == read_task("a", None, None).name != read_task("b", None, None).name


@pytest.mark.parametrize(("source", "path"), [(None, None), ("x", "/x.py")])
def test_exactly_one_of_source_and_path_is_wanted(source: str | None, path: str | None) -> None:
    with pytest.raises(RequestError, match="exactly one of `source`"):
        read_task(source, path, None)


def test_an_empty_reference_is_refused() -> None:
    with pytest.raises(RequestError, match="is empty"):
        read_task(" \n", None, None)


def nothing(path: Path) -> None: ...


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def binary(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


def huge(path: Path) -> None:
    path.write_bytes(b"#" * (MAX_SOURCE + 1))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (nothing, "No such file"),
        (Path.mkdir, "Is a directory"),
        (os.mkfifo, "not a regular file"),
        (link_to_a_device, "not a regular file"),
        (binary, "not UTF-8"),
        (huge, "larger than"),
    ],
    ids=["missing", "folder", "pipe", "device", "binary", "huge"],
)
def test_a_path_that_is_no_reference_is_refused(tmp_path: Path, make: Callable[[Path], object], expected: str) -> None:
    path = tmp_path / "task.py"
    make(path)
    with pytest.raises(RequestError, match=expected):
        read_task(None, str(path), None)


@pytest.mark.parametrize(("path", "expected"), [("task.py", "not an absolute path"), ("/etc/passwd", "end in .py")])
def test_only_python_files_by_their_whole_path_are_read(path: str, expected: str) -> None:
    with pytest.raises(RequestError, match=expected):
        read_task(None, path, None)


@pytest.mark.parametrize("target", ["gpu", "cuda", "cuda:sm_1", "CPU", "cuda:sm_75", "", "cpu\n"])
def test_an_unknown_target_is_answered_with_the_known_ones(target: str) -> None:
    with pytest.raises(RequestError, match="Valid: auto, cpu, cuda:sm_80"):
        resolve_target(target)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "cuda:sm_90a"])
def test_known_targets_are_taken_as_they_are(target: str) -> None:
    assert resolve_target(target) == target
