"""compute-sanitizer around a runner: what it leaves is read, and what goes wrong is told.

The program itself needs a GPU (tests/gpu). Here a stand-in takes its command line, runs the target as it does and leaves a log
in its form; judge, runner, boxes and channel are real.
"""

import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hiera_mcp.model.sanitizer import SANITIZERS, SanitizeRequest
from hiera_mcp.model.work import Limits
from hiera_mcp.sandbox.launcher import boxes
from hiera_mcp.sandbox.launcher.building import build
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.judging import Job
from hiera_mcp.sandbox.launcher.sanitizing import Course, sanitize

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLEAN = "========= ERROR SUMMARY: 0 errors"
WRONG = """\
========= Invalid __global__ write of size 4 bytes
=========     at k(float *)+0x90 in cpu_source.cpp:2
=========     Address 0x7f3c7ec00400 is out of bounds
========= ERROR SUMMARY: 1 error"""


def stand_in(said: str) -> str:
    return f"""#!/bin/sh
while [ "$1" != "{sys.executable}" ]; do [ "$1" = --log-file ] && log=$2; shift; done
echo "========= COMPUTE-SANITIZER" >"$log"
"$@" || exit
cat >>"$log" <<'END'
{said}
END
"""


async def silent(message: str, fraction: float | None) -> None:
    """For those who do not want to know."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Host]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", tempfile.gettempdir())  # opening a host moves it, for its own process
        made = await Host.open(tmp_path_factory.mktemp("cache"), unsafe=False)
        yield made
        await made.close()


def wanted(request: Any) -> SanitizeRequest:
    return SanitizeRequest(**{name: getattr(request, name) for name in ("contract", "files", "space", "sources")})


async def course_of(host: Host, request: Any, folder: Path, script: str) -> Course:
    folder.mkdir()
    program = folder / "compute-sanitizer"
    program.write_text(script)
    program.chmod(0o755)
    asked = wanted(request)
    return Course(Job(host, asked, await build(host, asked, silent), "cpu", silent), program)


async def test_each_tool_runs_the_candidate_and_its_log_is_read(host: Host, request_for: Any, tmp_path: Path) -> None:
    course = await course_of(host, request_for(), tmp_path / "tools", stand_in(CLEAN))
    await course.take("memcheck")
    await course.take("racecheck")
    found = course.result("2025.3")
    assert [(r.tool, r.status) for r in found.results] == [("memcheck", "clean"), ("racecheck", "clean")], found
    assert found.findings == () and "==== racecheck ====" in found.log


async def test_after_a_bad_access_the_other_tools_are_pointless(host: Host, request_for: Any, tmp_path: Path) -> None:
    course = await course_of(host, request_for(), tmp_path / "tools", stand_in(WRONG))
    await course.take("memcheck")
    await course.take("initcheck")
    found = course.result("")
    assert [r.status for r in found.results] == ["findings", "skipped"]
    assert (found.findings[0].line, found.breaks_memory) == (2, True)


async def test_a_candidate_that_crashes_under_it_is_told_with_its_signal(
    host: Host, request_for: Any, tmp_path: Path
) -> None:
    course = await course_of(host, request_for(inside="__builtin_trap();"), tmp_path / "tools", stand_in(CLEAN))
    await course.take("synccheck")
    (result,) = course.result("").results
    assert result.status == "candidate_failed" and "runner lost" in result.note


async def test_one_that_does_not_start_is_told_with_its_words(host: Host, request_for: Any, tmp_path: Path) -> None:
    script = "#!/bin/sh\necho '========= Error: Device not supported.'\nexit 1\n"
    course = await course_of(host, request_for(), tmp_path / "tools", script)
    await course.take("memcheck")
    await course.take("racecheck")
    assert [r.status for r in course.result("").results] == ["unsupported"] * 2


async def test_on_cpu_every_tool_says_that_there_is_nothing_to_look_at(host: Host, request_for: Any) -> None:
    found = await sanitize(host, wanted(request_for()), silent)
    assert [(r.tool, r.status) for r in found.results] == [(tool, "cpu") for tool in SANITIZERS]


async def test_the_runner_is_its_child_inside_the_box_on_buffers_of_its_own(tmp_path: Path) -> None:
    runner = boxes.runner(tmp_path, 7, "cuda:1", Limits())
    box = boxes.sanitizer(runner, tmp_path / "compute-sanitizer", "racecheck")
    assert box.argv[:3] == (str(tmp_path / "compute-sanitizer"), "--tool", "racecheck")
    assert box.argv[-len(runner.argv) - 1 :] == (*runner.argv, "--private")
    assert (box.profiler, box.writable, box.gpu, box.fds) == (True, True, runner.gpu, (7,))
    assert str(tmp_path) in [bind.inside for bind in box.binds]
