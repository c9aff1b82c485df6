"""Tasks of KernelBench: where they are read from, and which are chosen."""

import json
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.client.kernelbench import (
    DATASET,
    HubUnreachable,
    Problem,
    chosen,
    parse_choice,
    parse_levels,
    read_checkout,
    read_hub,
)
from hiera_mcp.errors import RequestError


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two levels, with files in an order that sorting by name would not give."""
    for level, names in {1: ("2_B.py", "10_C.py", "1_A.py", "helper.py"), 2: ("1_D.py",)}.items():
        folder = tmp_path / "KernelBench" / f"level{level}"
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text(f"# {name}")
    return tmp_path


def test_tasks_come_by_level_and_number_from_the_checkout_or_its_folder(checkout: Path) -> None:
    found = read_checkout(checkout, (1, 2))
    assert [p.name for p in found] == ["level1/1_A", "level1/2_B", "level1/10_C", "level2/1_D"]
    assert found[2].source == "# 10_C.py"
    assert read_checkout(checkout / "KernelBench", (1, 2)) == found


@pytest.mark.parametrize(
    ("path", "levels", "expected"),
    [
        ("missing", (1,), "There is no folder .*missing.*huggingface"),
        (".", (7,), r"no tasks of level 7\. Valid: 1, 2"),
        ("KernelBench/level1", (1,), "holds no tasks of KernelBench.*level1"),
    ],
)
def test_a_path_without_tasks_is_refused_with_what_would_do(
    checkout: Path, path: str, levels: tuple[int, ...], expected: str
) -> None:
    with pytest.raises(RequestError, match=expected):
        read_checkout(checkout / path, levels)


@given(st.integers(0, 99), st.integers(0, 999))
def test_a_task_is_named_in_three_ways(level: int, number: int) -> None:
    for text in (f"{level}/{number}", f"level{level}/{number}", f" level{level}/{number}_Some_Name.py"):
        assert parse_choice(text) == (level, number)


@pytest.mark.parametrize("text", ["", "76", "2-76", "level/3", "2/76/1"])
def test_what_names_no_task_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="level2/76"):
        parse_choice(text)


@pytest.mark.parametrize("text", ["", "a", "1,", "1-3", "²"])
def test_what_is_no_list_of_levels_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="1,2,3"):
        parse_levels(text)


def test_levels_are_sorted_and_each_once() -> None:
    assert parse_levels("3, 1,3") == (1, 3)


def test_a_task_that_is_not_there_is_refused_with_the_numbers_that_are(checkout: Path) -> None:
    found = read_checkout(checkout, (1,))
    assert [p.stem for p in chosen(found, [(1, 10), (1, 1), (1, 10)])] == ["1_A", "10_C"]
    assert chosen(found, []) == found
    with pytest.raises(RequestError, match=r"no task 1/50 here\. Level 1 has the numbers 1 to 10"):
        chosen(found, [(1, 50)])


class Rows(BaseHTTPRequestHandler):
    """Answers as the data set server does: 150 rows of level 1, at most 100 in one answer."""

    def do_GET(self) -> None:
        query = {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
        if query["split"] != "level_1" or query["dataset"] != DATASET:
            self.send_error(404, "The split does not exist")
            return
        start = int(query["offset"])
        numbers = range(start + 1, min(150, start + int(query["length"])) + 1)
        rows = [{"row_idx": n - 1, "row": row(n)} for n in numbers]
        body = json.dumps({"features": [], "rows": rows, "num_rows_total": 150}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


def row(number: int) -> dict[str, Any]:
    return {"code": f"# {number}", "level": 1, "name": f"{number}_Task.py", "problem_id": number}


@pytest.fixture
def rows_url() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Rows)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/rows"
    server.shutdown()
    server.server_close()


async def test_the_published_data_set_is_read_page_by_page(rows_url: str) -> None:
    found = await read_hub((1,), rows_url)
    assert [p.number for p in found] == list(range(1, 151))
    assert found[149] == Problem(level=1, number=150, stem="150_Task", source="# 150")


async def test_a_split_that_is_not_there_is_an_error_with_the_address(rows_url: str) -> None:
    with pytest.raises(HubUnreachable, match=r"cannot be read from http.*404.*checkout"):
        await read_hub((4,), rows_url)


async def test_without_a_network_a_checkout_is_proposed() -> None:
    with pytest.raises(HubUnreachable, match="Check the network, or name a checkout"):
        await read_hub((1,), "http://127.0.0.1:9/rows")
