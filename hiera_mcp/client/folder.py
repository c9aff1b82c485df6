"""A user's folder as a script.

    task.py             the reference, in KernelBench format (or the only *.py at the top, or what run.toml names)
    run.toml            optional: target, precision, goal, and per round what is decided and why
    round1/, round2/    candidates: *.cu or *.cpp (one file each), *.py (a ModelNew alone),
                        or a folder with a source file and model_new.py

The keys of run.toml are those of `Settings` and `RoundSettings` below.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from hiera_mcp.client.script import RECOMMENDED, Choice, Round, Script, StrategyText, Submission
from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model
from hiera_mcp.model.contract import Precision
from hiera_mcp.model.space import MODEL_FILE

SOURCES = (".cu", ".cpp", ".py")
NOTES = (".md", ".txt")
"""Passed over."""
MAX_FILE_BYTES = 1 << 20
_ROUND = re.compile(r"^round(\d+)$")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")


class RoundSettings(Model):
    """A `[roundN]` table of run.toml."""

    space: str = RECOMMENDED
    space_reason: str = ""
    direction: str = RECOMMENDED
    direction_reason: str = ""
    strategy: StrategyText | None = None
    strategy_reason: str = ""
    ideas: dict[str, str] = Field(default_factory=dict)
    """Candidate → what it tries, in a line."""
    parents: dict[str, str] = Field(default_factory=dict)
    """Candidate → candidate of an earlier round that it builds on."""


class Settings(Model):
    """The top of run.toml."""

    task: str | None = None
    """File name of the reference."""
    name: str | None = None
    target: str = "auto"
    precision: Precision = "float32"
    goal: str = ""
    plan: tuple[str, ...] = ()
    """What the planner does without."""
    rounds: int | None = Field(default=None, ge=1)
    """Only the first so many rounds."""


def read_folder(folder: Path, rounds: int | None = None) -> Script:
    """The script that a folder describes; at most the first `rounds` rounds of it.

    Raises:
        RequestError: what is missing or wrong in the folder, and what would be right.
    """
    if rounds is not None and rounds < 1:
        raise RequestError(f"{rounds} rounds cannot be run.", todo="Ask for 1 or more.")
    if not folder.is_dir():
        raise RequestError(f"{folder} is not a folder.", todo="Name a folder with task.py and round1/.")
    settings, tables = _settings(folder / "run.toml")
    task = _task_file(folder, settings.task)
    folders = _round_folders(folder)
    for n in tables:
        if n > len(folders):
            raise RequestError(f"run.toml has a table [round{n}], but there is no folder round{n} in {folder}.")
    most = rounds or settings.rounds
    kept = [_round(path, n, tables.get(n, RoundSettings())) for n, path in folders[:most]]
    script = Script(
        name=settings.name or task_name(task),
        source=_text(task),
        target=settings.target,
        precision=settings.precision,
        goal=settings.goal,
        plan=settings.plan,
        rounds=tuple(kept),
    )
    _check_parents(script)
    return script


def task_name(task: Path) -> str:
    """What a reference is called: its file's name, or for `task.py` its folder's."""
    return task.resolve().parent.name if task.stem == "task" else task.stem


def _settings(path: Path) -> tuple[Settings, dict[int, RoundSettings]]:
    if not path.exists():
        return Settings(), {}
    try:
        data = tomllib.loads(_text(path))
        top = {k: v for k, v in data.items() if not _ROUND.match(k)}
        tables = {int(m[1]): RoundSettings.model_validate(v) for k, v in data.items() if (m := _ROUND.match(k))}
        return Settings.model_validate(top), tables
    except tomllib.TOMLDecodeError as e:
        raise RequestError(f"{path} is not valid TOML: {e}.") from e
    except ValidationError as e:
        raise RequestError(f"{path}: {_faults(e)}.", valid=_keys(e)) from e


def _faults(error: ValidationError) -> str:
    return "; ".join(f"`{'.'.join(map(str, f['loc']))}`: {f['msg']}" for f in error.errors(include_url=False))


def _keys(error: ValidationError) -> list[str]:
    """The keys of the table in which an unknown one was found."""
    if not any(f["type"] == "extra_forbidden" for f in error.errors()):
        return []
    models = {m.__name__: m for m in (Settings, RoundSettings)}
    extra = ["round1, round2, … (tables)"] if error.title == "Settings" else []
    return [*models[error.title].model_fields, *extra]


def _task_file(folder: Path, named: str | None) -> Path:
    if named is not None:
        path = folder / named
        if not path.is_file():
            raise RequestError(f"run.toml names the task {named}, but there is no such file in {folder}.")
        return path
    if (folder / "task.py").is_file():
        return folder / "task.py"
    found = sorted(p for p in folder.glob("*.py") if p.is_file())
    if len(found) == 1:
        return found[0]
    todo = 'Put the reference (Model, get_inputs, get_init_inputs) into task.py, or name it in run.toml: task = "…".'
    if not found:
        raise RequestError(f"There is no task file in {folder}.", todo=todo)
    raise RequestError(f"Which file in {folder} is the task?", todo=todo, valid=[p.name for p in found])


def _round_folders(folder: Path) -> list[tuple[int, Path]]:
    found = sorted((int(m[1]), p) for p in folder.iterdir() if p.is_dir() and (m := _ROUND.match(p.name)))
    numbers = [n for n, _ in found]
    if not found:
        raise RequestError(f"There is no round1/ in {folder}.", todo="Put the first candidates into round1/.")
    if numbers != list(range(1, len(numbers) + 1)):
        names = ", ".join(p.name for _, p in found)
        raise RequestError(f"The rounds in {folder} are {names}.", todo="Number them 1, 2, 3, … without a gap.")
    return found


def _round(folder: Path, n: int, settings: RoundSettings) -> Round:
    candidates = tuple(_submissions(folder, settings))
    names = [c.name for c in candidates]
    if not candidates:
        raise RequestError(f"{folder} holds no candidate.", todo=f"Put {', '.join('*' + s for s in SOURCES)} into it.")
    for key in ("ideas", "parents"):
        for name in getattr(settings, key):
            if name not in names:
                raise RequestError(f"run.toml: [round{n}.{key}] names `{name}`, not in {folder}.", valid=names)
    return Round(
        space=Choice(choice=settings.space, reason=settings.space_reason),
        direction=Choice(choice=settings.direction, reason=settings.direction_reason),
        strategy=settings.strategy,
        strategy_reason=settings.strategy_reason,
        candidates=candidates,
    )


def _submissions(folder: Path, settings: RoundSettings) -> Iterator[Submission]:
    seen: dict[str, Path] = {}
    for path in _visible(folder):
        name = path.name if path.is_dir() else path.stem
        if not _NAME.match(name):
            raise RequestError(
                f"{path}: `{name}` cannot be a candidate's name.", valid=["letters, digits, `_`, `.`, `-`"]
            )
        if name in seen:
            raise RequestError(f"{seen[name]} and {path} are both called `{name}`.", todo="Rename one of them.")
        seen[name] = path
        sources = _files(path) if path.is_dir() else _single(path)
        yield Submission(
            name=name, sources=sources, parent=settings.parents.get(name), idea=settings.ideas.get(name, "")
        )


def _visible(folder: Path) -> list[Path]:
    """What counts in a folder: no hidden files, no caches, no notes."""
    paths = sorted(folder.iterdir())
    return [p for p in paths if not p.name.startswith((".", "__")) and (p.is_dir() or p.suffix not in NOTES)]


def _single(path: Path) -> dict[str, str]:
    if path.suffix not in SOURCES:
        raise RequestError(
            f"{path} is not a candidate.",
            todo="Move it elsewhere.",
            valid=[*(f"*{s}" for s in SOURCES), "a folder"],
        )
    return {MODEL_FILE if path.suffix == ".py" else path.name: _text(path)}


def _files(folder: Path) -> dict[str, str]:
    paths = _visible(folder)
    for path in paths:
        if path.is_dir() or path.suffix not in SOURCES:
            valid = [f"*{s}" for s in SOURCES]
            raise RequestError(f"{path} cannot be part of a candidate.", todo="Put all in one source.", valid=valid)
    for suffix in SOURCES:
        same = [p.name for p in paths if p.suffix == suffix]
        if len(same) > 1:
            raise RequestError(f"{folder} holds several *{suffix} files: {', '.join(same)}.", todo="Join them in one.")
    if not paths:
        raise RequestError(f"{folder} holds no source file.", valid=[f"*{s}" for s in SOURCES])
    return {MODEL_FILE if p.suffix == ".py" else p.name: _text(p) for p in paths}


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        text = data.decode()
    except (OSError, UnicodeDecodeError) as e:
        raise RequestError(f"{path} cannot be read as UTF-8 text: {e}.") from e
    if len(data) > MAX_FILE_BYTES:
        raise RequestError(f"{path} has {len(data)} bytes.", todo=f"At most {MAX_FILE_BYTES} are accepted.")
    if not text.strip():
        raise RequestError(f"{path} is empty.")
    return text


def _check_parents(script: Script) -> None:
    earlier: list[str] = []
    for n, one in enumerate(script.rounds, 1):
        for candidate in one.candidates:
            if candidate.parent is not None and candidate.parent not in earlier:
                what = f"run.toml: in round {n}, `{candidate.name}` builds on `{candidate.parent}`, not in an earlier round."
                raise RequestError(what, valid=earlier)
        names = [c.name for c in one.candidates]
        twice = set(names) & set(earlier)
        if twice:
            raise RequestError(f"Candidate `{min(twice)}` exists in two rounds.", todo="Give it another name.")
        earlier += names
