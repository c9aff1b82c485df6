"""The tracer in its box, through the executor: the reference is user code and must not reach the host."""

import shutil
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from hiera_mcp.errors import TaskError
from hiera_mcp.model.work import TraceRequest
from hiera_mcp.sandbox.local import LocalExecutor

TaskText = Callable[..., str]

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


async def quiet(message: str, fraction: float | None) -> None:
    pass


@pytest.fixture
async def executor(tmp_path: Path) -> AsyncGenerator[LocalExecutor]:
    made = LocalExecutor(cache_dir=tmp_path / "cache")
    yield made
    await made.close()


async def test_a_reference_in_its_box_is_traced_and_sees_no_file_of_the_host(
    executor: LocalExecutor, task_text: TaskText, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    good = task_text(init="self.f = nn.Linear(8, 4)", forward="return self.f(x)")
    trace = await executor.trace(TraceRequest(source=good, name="good"), quiet)
    assert trace.outputs[0].shape == (4, 4)
    assert trace.trivial_outputs is not None
    nosy = task_text(head=f"print(open({str(secret)!r}).read())")
    with pytest.raises(TaskError, match="FileNotFoundError at line"):
        await executor.trace(TraceRequest(source=nosy, name="nosy"), quiet)
