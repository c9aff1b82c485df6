"""What the driver refuses before it asks the server for work."""

from typing import Any

import pytest
from mcp.server import MCPServer

from hiera_mcp.client.connect import in_memory
from hiera_mcp.client.drive import drive
from hiera_mcp.client.events import Event
from hiera_mcp.client.script import Round, Script, Submission
from hiera_mcp.client.session import ToolFailed
from hiera_mcp.errors import RequestError


def script(target: str, *files: str) -> Script:
    candidates = tuple(Submission(name=f"c{n}", sources={name: "x"}) for n, name in enumerate(files))
    return Script(name="task", source="x", target=target, rounds=(Round(candidates=candidates),))


async def outcome(one: Script) -> tuple[BaseException, list[Event]]:
    """How a server without any tool answers it."""
    told: list[Event] = []
    empty: MCPServer[Any] = MCPServer("empty")
    async with in_memory(empty) as client:
        with pytest.raises((RequestError, ToolFailed)) as raised:
            await drive(client, one, told.append)
    return raised.value, told


@pytest.mark.parametrize(
    ("target", "wrong", "fits"), [("cpu", "a.cu", "*.cpp, model_new.py"), ("cuda:sm_80", "a.cpp", "*.cu, model_new.py")]
)
async def test_a_candidate_of_another_platform_than_the_named_target_costs_no_work(
    target: str, wrong: str, fits: str
) -> None:
    error, told = await outcome(script(target, "model_new.py", wrong))
    assert isinstance(error, RequestError)
    assert f"`c1` is a *{wrong[1:]} file, but the target is {target}" in str(error)
    assert fits in str(error)
    assert not told


@pytest.mark.parametrize("target", ["auto", "gpu"])
async def test_with_a_target_that_is_not_known_here_the_server_is_asked(target: str) -> None:
    error, _ = await outcome(script(target, "a.cu"))
    assert isinstance(error, ToolFailed)
