"""Knowledge entries: Markdown files with YAML front matter, read and validated."""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hiera_mcp.errors import RequestError
from hiera_mcp.model.knowledge import SIGNALS, Entry
from hiera_mcp.model.space import spaces_of

OPERATORS = (
    "any",
    "gemm",
    "conv",
    "attention",
    "reduction",
    "normalisation",
    "elementwise",
    "movement",
    "scan",
    "other",
)
"""Operator kinds as the contract names them, and `any`."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster where PyYAML was built with libyaml
_FRONT = re.compile(r"\A---\s*\n(.*?)\n---\s*\n?(.*)\Z", re.DOTALL)
_SLUG = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
_ARCH = re.compile(r"^(cpu|cuda|sm_\d{2,3}[af]?|sm_\d{2,3}\+)$")


def parse_entry(text: str, where: str) -> Entry:
    """The entry in the text of one file. Raises RequestError that says what is wrong and where."""
    found = _FRONT.match(text)
    if found is None:
        raise RequestError(f"{where}: no YAML front matter between two lines of ---.")
    try:
        data: Any = yaml.load(found[1], Loader=_LOADER)
        if not isinstance(data, dict):
            raise RequestError(f"{where}: the front matter is not a mapping.")
        entry = Entry.model_validate({**data, "body": found[2].strip()})  # pyright: ignore[reportUnknownArgumentType]
    except yaml.YAMLError as error:
        raise RequestError(f"{where}: the front matter is not YAML: {error}") from error
    except ValidationError as error:
        raise RequestError(f"{where}: " + "; ".join(map(_fault, error.errors()))) from error
    _check(entry, where)
    return entry


def _fault(error: ErrorDetails) -> str:
    """The field at fault, as `signature[2].op`, and what is wrong with it."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    return f"{field}: {error['msg'].removeprefix('Value error, ')}"


def packaged_entries() -> tuple[Entry, ...]:
    """The entries that ship with the package."""
    return _load(_walk(files("hiera_mcp").joinpath("knowledge_base", "entries")))


def merged(shipped: Sequence[Entry], folder: Path) -> tuple[Entry, ...]:
    """The shipped entries and a user's own. An own one with the id of a shipped one takes its place if it says so.

    Raises:
        RequestError: as `entries_in`; an id is taken and the file does not say `overrides: true`, or it says so and there
            is nothing to override.
    """
    ids, own = {entry.id for entry in shipped}, entries_in(folder)
    for entry in own:
        if entry.id in ids and not entry.overrides:
            todo = "Choose another id, or write `overrides: true` to put it in the shipped one's place."
            raise RequestError(f"{entry.id}.md: id: {entry.id} is the id of a shipped entry.", todo=todo)
        if entry.overrides and entry.id not in ids:
            raise RequestError(f"{entry.id}.md: overrides: there is no shipped entry {entry.id}.", todo="Leave it out.")
    return tuple({entry.id: entry for entry in (*shipped, *own)}.values())


def entries_in(folder: Path) -> tuple[Entry, ...]:
    """The entries of a user's folder, searched recursively. Raises RequestError when it does not exist."""
    if not folder.is_dir():
        raise RequestError(f"The knowledge folder {folder} does not exist.", todo="Create it or correct the setting.")
    return _load((f, str(f.relative_to(folder))) for f in sorted(folder.rglob("*.md")))


def _load(sources: Iterable[tuple[Traversable, str]]) -> tuple[Entry, ...]:
    entries: dict[str, Entry] = {}
    for source, where in sources:
        entry = parse_entry(_text(source, where), where)
        if entry.id in entries:
            raise RequestError(f"{where}: the id {entry.id} is used twice.")
        if source.name != f"{entry.id}.md":
            raise RequestError(f"{where}: the file must be called {entry.id}.md.")
        entries[entry.id] = entry
    return tuple(entries.values())


def _text(source: Traversable, where: str) -> str:
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{where}: cannot be read as UTF-8 text: {error}") from error


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[Traversable, str]]:
    for item in sorted(folder.iterdir(), key=lambda i: i.name):
        if item.is_dir():
            yield from _walk(item, f"{prefix}{item.name}/")
        elif item.name.endswith(".md"):
            yield item, prefix + item.name


def _check(entry: Entry, where: str) -> None:
    """What the model cannot say by itself."""
    problems = [
        *([] if _SLUG.match(entry.id) else [f"id: {entry.id!r} is not lower-case words joined by hyphens"]),
        *(
            f"operators: {o!r} is unknown (valid: {', '.join(OPERATORS)})"
            for o in entry.operators
            if o not in OPERATORS
        ),
        *(
            f"archs: {a!r} is unknown (valid: cpu, cuda, sm_80, sm_90a, sm_80+)"
            for a in entry.archs
            if not _ARCH.match(a)
        ),
        *(
            []
            if entry.must_move in SIGNALS or entry.must_move == "time"
            else [f"must_move: {entry.must_move!r} is neither a signal nor `time`"]
        ),
        *_space_problems(entry),
    ]
    if problems:
        raise RequestError(f"{where}: " + "; ".join(problems))


def _space_problems(entry: Entry) -> Iterator[str]:
    on_cpu = [s for s in entry.spaces if s in spaces_of("cpu")]
    on_cuda = [s for s in entry.spaces if s not in on_cpu]
    for platform, spaces, archs in (
        ("cpu", on_cpu, [a for a in entry.archs if a == "cpu"]),
        ("cuda", on_cuda, [a for a in entry.archs if a != "cpu"]),
    ):
        if len(spaces) > 1:
            yield f"spaces: more than one for {platform}: name the smallest one, larger ones are implied"
        if bool(spaces) is not bool(archs):
            yield f"archs: spaces and archs disagree about {platform}"
