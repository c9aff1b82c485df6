"""`hiera-mcp kb search QUERY`: expert entries and recorded lessons. `kb export` and `kb import` move memory."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio

from hiera_mcp.cli.connection import local
from hiera_mcp.cli.memory_file import memory_text, read_memory, write_memory
from hiera_mcp.cli.options import DATA_DIR_HELP, add_json, add_settings, settings_of
from hiera_mcp.cli.output import wrapped
from hiera_mcp.client.session import Answer, Session
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.settings import Settings
from hiera_mcp.store import Store

T = TypeVar("T")

DIRECTIONS = [direction.value for direction in Direction]
SPACES = [space.value for space in Space]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    search = actions.add_parser("search", help="entries and lessons for some words")
    add_settings(search)
    add_json(search)
    search.add_argument("query", nargs="+", help="some words")
    search.add_argument("--direction", choices=DIRECTIONS, metavar="DIRECTION", help=f"one of {', '.join(DIRECTIONS)}")
    search.add_argument("--space", choices=SPACES, metavar="SPACE", help=f"one of {', '.join(SPACES)}")
    search.add_argument("--arch", metavar="ARCH", help="cpu, sm_80, sm_90a, … or a whole target such as cuda:sm_80")
    search.add_argument("--limit", type=int, default=5, help="at most so many, 1 to 20 (default: %(default)s)")
    search.set_defaults(act=_found)
    export = actions.add_parser("export", help="write what runs on this host taught into a file")
    export.add_argument("file", type=Path, metavar="FILE", help="JSON; `-` is standard output")
    export.set_defaults(act=_export)
    imports = actions.add_parser("import", help="take over what runs on another host taught")
    imports.add_argument("file", type=Path, metavar="FILE", help="what kb export wrote; a file may be imported again")
    imports.set_defaults(act=_import)
    for mover in (export, imports):
        mover.add_argument("--data-dir", type=Path, metavar="DIR", help=DATA_DIR_HELP)
        mover.set_defaults(knowledge=None, unsafe_no_sandbox=False)


def run(args: argparse.Namespace) -> int:
    return int(args.act(args))


def _export(args: argparse.Namespace) -> int:
    memory = _with_store(settings_of(args), lambda store: store.export_memory())
    if str(args.file) == "-":
        print(memory_text(memory), end="")
        return 0
    write_memory(memory, args.file)
    print(f"{_count(len(memory.rounds), 'round')} and {_count(len(memory.lessons), 'lesson')} written to {args.file}")
    return 0


def _import(args: argparse.Namespace) -> int:
    memory = read_memory(args.file)
    done = _with_store(settings_of(args), lambda store: store.import_memory(memory))
    new = f"{_count(done.rounds, 'round')} and {_count(done.lessons, 'lesson')}"
    print(f"{new} taken over from {args.file}; {done.known} were known")
    return 0


def _with_store(settings: Settings, use: Callable[[Store], T]) -> T:
    store = Store.open(settings.database, settings.blobs)
    try:
        return use(store)
    finally:
        store.close()


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _found(args: argparse.Namespace) -> int:
    filters = {name: getattr(args, name) for name in ("direction", "space", "arch", "limit")}
    answer = anyio.run(_search, settings_of(args), {"query": " ".join(args.query), **filters})
    found = {key: answer[key] for key in ("entries", "lessons")}
    print(json.dumps(found, indent=2) if args.json else "\n".join(lines_of(found)))
    return 0 if any(found.values()) else 1


async def _search(settings: Settings, arguments: dict[str, Any]) -> Answer:
    async with local(settings) as client:
        return await Session(client).call("hiera_knowledge_search", **arguments)


def lines_of(found: dict[str, Any]) -> list[str]:
    """Entries first, then lessons."""
    lines: list[str] = []
    for entry in found["entries"]:
        lines += [
            f"{entry['slug']}: {entry['title']}  ({entry['direction'] or 'library'})",
            *wrapped(entry["summary"], "    "),
        ]
    for lesson in found["lessons"]:
        lines += [f"lesson {lesson['id']}: {lesson['title']}", *wrapped(lesson["text"], "    ")]
        lines += [line for proof in lesson["proof"] for line in wrapped(f"- {proof}", "    ")]
    return lines or ["Nothing found."]
