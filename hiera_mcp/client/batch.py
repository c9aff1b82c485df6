"""Many contracts into one folder: built side by side by one server, and resumed where an earlier run was stopped.

A task's folder holds the contract's files and, written last, `built.json`: what it was built from, and a digest of each
file. A folder without it, or with files that differ from it, is built anew.
"""

import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
from pydantic import Field, ValidationError

from hiera_mcp import __version__
from hiera_mcp.client.kernelbench import Problem
from hiera_mcp.client.report import ContractView
from hiera_mcp.client.session import Session, ToolFailed
from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model, Text, digest
from hiera_mcp.model.contract import Contract, Precision

INDEX = "built.json"
LONGEST_NAME = 100
"""Characters of a task's name that the server takes."""


class Options(Model):
    """How contracts are built."""

    target: Text = "auto"
    precision: Precision = "float32"
    rtol: float | None = None
    atol: float | None = None
    compare: str | None = None

    def key(self, source: str) -> str:
        """What a contract depends on: the same key, the same contract."""
        return digest({"source": source, "options": self.model_dump(mode="json"), "version": __version__})


class Row(Model):
    """One task of the summary."""

    task: Text
    level: int
    contract_id: str = ""
    """Empty: it failed."""
    parameters: int = 0
    """Tensors handed to the candidate."""
    operators: int = 0
    """Launches of one eager call."""
    flops: float = 0.0
    bytes: float = 0.0
    """Compulsory traffic."""
    intensity: float = 0.0
    """FLOP per byte."""
    floor_s: float = 0.0
    bound: str = ""
    degeneracy: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    """Wall-clock time of building it."""
    error: str = ""


class Built(Model):
    """The index entry of one task."""

    key: Text
    row: Row
    files: dict[str, str] = Field(min_length=1)
    """Name → digest of its text."""


Tell = Callable[[Row, bool], None]
"""Hears of each task that is done; true when an earlier run had built it."""


async def build_all(
    session: Session, problems: Sequence[Problem], out: Path, options: Options, jobs: int, force: bool, tell: Tell
) -> list[Row]:
    """Build the contract of each problem into `out`/levelN/STEM, at most `jobs` at once; rows in the problems' order.

    A task that fails becomes a row with its error.

    Raises:
        RequestError: `out` cannot be written.
        MCPError: the server is gone.
    """
    rows: dict[str, Row] = {}
    queue = iter(problems)

    async def work() -> None:
        for problem in queue:
            earlier = None if force else _whole(out / problem.name, options.key(problem.source))
            rows[problem.name] = row = earlier or await _build(session, problem, out / problem.name, options)
            tell(row, earlier is not None)

    await _in_parallel([work] * jobs)
    return [rows[p.name] for p in problems]


async def _in_parallel(workers: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Run all; the first error ends the others and comes out as itself, not wrapped in a group."""
    try:
        async with anyio.create_task_group() as group:
            for worker in workers:
                group.start_soon(worker)
    except BaseExceptionGroup as error:
        raise cast(Exception, error.exceptions[0]) from error


async def _build(session: Session, problem: Problem, folder: Path, options: Options) -> Row:
    start = time.perf_counter()
    try:
        texts = await _texts(session, problem, options)
    except ToolFailed as error:
        _forget(folder)
        return Row(task=problem.name, level=problem.level, seconds=time.perf_counter() - start, error=str(error))
    contract = Contract.model_validate_json(texts["contract.json"])
    row = row_of(problem, contract, time.perf_counter() - start)
    _keep(folder, texts, options.key(problem.source), row)
    return row


async def _texts(session: Session, problem: Problem, options: Options) -> dict[str, str]:
    """The files of the problem's contract."""
    given = options.model_dump(mode="json", exclude_none=True)
    answer = await session.work(
        "hiera_contract_build", source=problem.source, name=problem.name[:LONGEST_NAME], **given
    )
    view = ContractView.model_validate(answer["contract"])
    return {Path(name).name: await session.read(uri) for name, uri in view.files.items()}


def row_of(problem: Problem, contract: Contract, seconds: float) -> Row:
    """What the summary says of a contract."""
    return Row(
        task=problem.name,
        level=problem.level,
        contract_id=contract.id,
        parameters=len(contract.parameters),
        operators=contract.features.launches,
        flops=contract.features.flops,
        bytes=contract.features.compulsory_bytes,
        intensity=contract.features.arithmetic_intensity,
        floor_s=contract.floor.seconds,
        bound=contract.floor.bound,
        degeneracy=degeneracy_word(contract),
        notes=contract.notes,
        seconds=seconds,
    )


def degeneracy_word(contract: Contract) -> str:
    """`none`, `not measured`, `unverifiable`, or what passes without work."""
    seen = contract.degeneracy
    passing = {
        "zeros": seen.zeros_pass,
        "constant": seen.constant_passes,
        "input echo": seen.input_echo_passes,
        "other inputs": seen.other_inputs_pass,
    }
    found = ", ".join(name for name, passes in passing.items() if passes)
    if seen.unverifiable:
        return "unverifiable"
    if found:
        return f"{found} (remedied)" if seen.remedy else found
    return "none" if seen.measured else "not measured"


def _whole(folder: Path, key: str) -> Row | None:
    """The row of a folder that was built under this key and that nobody has changed since."""
    try:
        built = Built.model_validate_json((folder / INDEX).read_text(encoding="utf-8"))
        same = all(digest((folder / name).read_text(encoding="utf-8")) == d for name, d in built.files.items())
    except (OSError, ValueError, ValidationError):  # missing, cut off, or of another version
        return None
    return built.row if same and built.key == key else None


def _keep(folder: Path, texts: Mapping[str, str], key: str, row: Row) -> None:
    _forget(folder)
    built = Built(key=key, row=row, files={name: digest(text) for name, text in texts.items()})
    for name, text in texts.items():
        write_atomically(folder / name, text)
    write_atomically(folder / INDEX, built.model_dump_json(indent=1) + "\n")


def _forget(folder: Path) -> None:
    """The folder does not count as built from now on."""
    (folder / INDEX).unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """The whole text or nothing, whatever ends the process in between.

    Raises:
        RequestError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        what = f"{path} cannot be written: {error.strerror or error}."
        raise RequestError(what, todo="Name another folder with --out, or make room.") from error
