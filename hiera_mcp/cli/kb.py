"""`hiera-mcp kb search QUERY`: expert entries and recorded lessons."""

import argparse
import json
from typing import Any

import anyio

from hiera_mcp.cli.connection import local
from hiera_mcp.cli.options import add_json, add_settings, settings_of
from hiera_mcp.cli.output import wrapped
from hiera_mcp.client.session import Answer, Session
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.settings import Settings

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


def run(args: argparse.Namespace) -> int:
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
    return lines or ["Nothing found."]
