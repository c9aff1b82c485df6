"""Read a report of Nsight Compute: in a box, since it was written beside untrusted code.

By NVIDIA's reader from ncu's own folder, else from the wheel `ncu-report`; else by ncu itself, which prints its pages.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from hiera_mcp.sandbox.child.leftovers import read_result
from hiera_mcp.sandbox.isolation import process
from hiera_mcp.sandbox.isolation.binds import child_binds, python_binds
from hiera_mcp.sandbox.isolation.box import BOX, Bind, BoxLimits, BoxSpec
from hiera_mcp.sandbox.launcher import boxes
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.profiling import nsight
from hiera_mcp.sandbox.profiling.pages import from_pages
from hiera_mcp.sandbox.profiling.raw import RawLaunch, from_json

READ_S = 30.0
MEMORY_BYTES = 4 << 30
RESULT = "result.json"
REPORT = boxes.NCU_REPORT


@dataclass(frozen=True)
class Read:
    """What was read, and by what."""

    launches: tuple[RawLaunch, ...]
    by: str
    """`ncu_report` or `CSV`; empty when nothing could read it."""


async def read(host: Host, ncu: Path, report: bytes) -> Read:
    """The launches in a report; none when neither the readers nor ncu can read it."""
    for folder in (*nsight.readers(ncu), None):
        launches = await by_module(host, report, folder)
        if launches:
            return Read(launches, "ncu_report")
    launches = await by_pages(host, ncu, report)
    return Read(launches, "CSV" if launches else "")


async def by_module(host: Host, report: bytes, folder: Path | None) -> tuple[RawLaunch, ...]:
    """By `ncu_report` in `folder`, or among the packages when that is None; none when it is not there or cannot."""
    with host.work.folder("report") as work:
        (work / REPORT).write_bytes(report)
        await process.run(host.isolation, reader_box(work, folder), READ_S)
        result = read_result(work / RESULT)
    try:
        return from_json(json.loads(result)) if result else ()
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()


async def by_pages(host: Host, ncu: Path, report: bytes) -> tuple[RawLaunch, ...]:
    """By ncu, which prints the report's pages; none when it cannot."""
    texts: list[str] = []
    with host.work.folder("report") as work:
        (work / REPORT).write_bytes(report)
        for page in nsight.PAGES:
            await process.run(host.isolation, page_box(work, ncu, page), READ_S)
            texts.append((read_result(work / f"{page}.csv") or b"").decode(errors="replace"))
    return from_pages(*texts)


def reader_box(work: Path, folder: Path | None) -> BoxSpec:
    """Where child/ncu_reader.py reads the report; `folder` holds the module, None: it is among the packages."""
    where = () if folder is None else ("--reader", str(folder))
    home = None if folder is None else folder.parents[1]  # extras/python; the module needs libraries beside it
    shown = () if home is None or home.is_relative_to("/usr") else (Bind(home, str(home)),)
    return BoxSpec(
        argv=boxes.child_argv("ncu_reader", "--report", f"{BOX}/{REPORT}", "--result", f"{BOX}/{RESULT}", *where),
        work=work,
        limits=BoxLimits(memory_bytes=MEMORY_BYTES),
        binds=(*python_binds(), *child_binds(), *shown),
        env=boxes.environment(),
    )


def page_box(work: Path, ncu: Path, page: nsight.Page) -> BoxSpec:
    """Where ncu prints a page into a file, since a box's output is cut."""
    return BoxSpec(
        argv=("/bin/sh", "-c", f'"$@" >{BOX}/{page}.csv', "sh", *nsight.page_command(ncu, f"{BOX}/{REPORT}", page)),
        work=work,
        limits=BoxLimits(memory_bytes=MEMORY_BYTES, memory_kind="none"),
        binds=nsight.binds(ncu),
    )
