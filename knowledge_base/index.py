"""The knowledge base: entries behind an in-memory full-text index (SQLite FTS5), and ranking by signature."""

import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

from sqlite_utils import Database

from hiera_mcp.errors import NotFoundError, RequestError
from hiera_mcp.knowledge_base.entries import entries_in, packaged_entries
from hiera_mcp.model.knowledge import Condition, Entry, Match, SignalValue
from hiera_mcp.model.space import Direction, Space, architecture

COLUMNS = ("title", "tags", "guidance", "body")
COLUMN_WEIGHTS = "6.0, 4.0, 2.0, 1.0"
"""bm25 weights of COLUMNS: a word in the title says more than one in the text."""
MAX_LIMIT = 50


class KnowledgeBase:
    """Entries with search. Immutable after construction; reads are safe from any thread."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.id: entry for entry in entries}
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._fill()

    @classmethod
    def load(cls, user_folder: Path | None = None) -> Self:
        """The packaged entries, and those of a user's folder; a user's entry replaces a packaged one of the same id.

        Raises RequestError when the folder does not exist or a file in it is not a valid entry.
        """
        own = entries_in(user_folder) if user_folder is not None else ()
        return cls([*packaged_entries(), *own])

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries.values())

    def entry(self, slug: str) -> Entry:
        """Raises NotFoundError with the nearest slugs."""
        found = self._entries.get(slug)
        if found is None:
            near = [m.id for m in self.search(slug.replace("-", " "), limit=8)]
            raise NotFoundError(f"No knowledge entry {slug!r}.", valid=near or sorted(self._entries))
        return found

    def search(
        self,
        query: str = "",
        direction: Direction | str | None = None,
        space: Space | str | None = None,
        arch: str | None = None,
        limit: int = 5,
    ) -> tuple[Entry, ...]:
        """Entries that contain any word of `query`, the best first (bm25); without a query all that pass the filters.

        Nothing in `query` is syntax: `cp.async`, `sm_80+`, quotes and operators are plain text. `arch` is `cpu`, `sm_90a`
        or a whole target. Entries about libraries have no direction and pass any direction filter.
        """
        allowed = self._filtered(direction, space, arch)
        if not query.strip():
            return tuple(allowed.values())[: _limit(limit)]
        ranked = self._ranked(quote(query))
        return tuple(allowed[slug] for slug in ranked if slug in allowed)[: _limit(limit)]

    def matching(
        self,
        features: Mapping[str, SignalValue],
        direction: Direction | str | None = None,
        space: Space | str | None = None,
        arch: str | None = None,
        limit: int = 5,
    ) -> tuple[Match, ...]:
        """Entries that fit a situation, the best first. `features` maps signals (`SIGNALS`) to values or None.

        Score: share of the entry's conditions that hold, minus the share that fails, plus the share of the reference's
        time in the entry's operators (one half for `any`), plus a tenth for an entry written for exactly this
        architecture. Entries whose operators do not occur are left out. Ties go by id: the order is reproducible.
        """
        place = _place(arch)
        matches = (match(entry, features, place) for entry in self._filtered(direction, space, arch).values())
        found = [m for m in matches if m is not None]
        return tuple(sorted(found, key=lambda m: (-m.score, m.entry.id))[: _limit(limit)])

    def _filtered(
        self, direction: Direction | str | None, space: Space | str | None, arch: str | None
    ) -> dict[str, Entry]:
        wanted = _member(Direction, direction)
        inside = _member(Space, space)
        place = _place(arch)
        return {
            entry.id: entry
            for entry in self._entries.values()
            if (wanted is None or entry.direction in (wanted, None))
            and (inside is None or entry.allows_space(inside))
            and (place is None or entry.allows_arch(place))
        }

    def _ranked(self, expression: str) -> list[str]:
        if not expression:
            return []
        sql = f"select slug from entries_fts where entries_fts match ? order by bm25(entries_fts, 0, {COLUMN_WEIGHTS}), slug"
        with self._lock:
            return [str(slug) for (slug,) in self._connection.execute(sql, [expression])]

    def _fill(self) -> None:
        table = Database(self._connection).table("entries")
        table.create({name: str for name in ("slug", *COLUMNS)}, pk="slug")
        table.insert_all([_row(entry) for entry in self._entries.values()])
        table.enable_fts(["slug", *COLUMNS], tokenize="porter")


def quote(query: str) -> str:
    """An FTS5 expression that finds any of the words; each word is quoted, so that nothing in it is syntax."""
    text = query.encode("utf-8", "ignore").decode().replace("\0", " ")  # what SQLite cannot take as a string
    words = [word for word in text.split() if any(c.isalnum() for c in word)]
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in words)


def match(entry: Entry, features: Mapping[str, SignalValue], arch: str | None = None) -> Match | None:
    """How well one entry fits; None when none of its operators occurs in the task."""
    operators = _operator_share(entry, features)
    if operators == 0:
        return None
    results = [(c, c.holds(features)) for c in entry.signature]
    held = [c for c, holds in results if holds]
    failed = [c for c, holds in results if holds is False]
    unknown = [c for c, holds in results if holds is None]
    signature = (len(held) - len(failed)) / len(results)
    exact = 0.1 if arch is not None and arch in entry.archs and arch != "cpu" else 0.0
    return Match(
        entry=entry,
        score=round(signature + operators + exact, 4),
        why=_why(held, failed, unknown, features),
    )


def _operator_share(entry: Entry, features: Mapping[str, SignalValue]) -> float:
    """Share of the reference's time in the entry's operators; one half for `any`, and when no share is known."""
    shares = [features.get(f"{kind}_share") for kind in entry.operators]
    known = [float(s) for s in shares if isinstance(s, int | float)]
    return min(1.0, sum(known)) if known and "any" not in entry.operators else 0.5


def _why(
    held: Sequence[Condition],
    failed: Sequence[Condition],
    unknown: Sequence[Condition],
    features: Mapping[str, SignalValue],
) -> str:
    parts = [
        "holds: " + ", ".join(f"{c} ({_shown(features.get(c.signal))})" for c in held) if held else "",
        "fails: " + ", ".join(f"{c} ({_shown(features.get(c.signal))})" for c in failed) if failed else "",
        "unknown: " + ", ".join(str(c) for c in unknown) if unknown else "",
    ]
    return "; ".join(part for part in parts if part)


def _shown(value: SignalValue) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value).lower()


def _row(entry: Entry) -> dict[str, str]:
    tags = [entry.id, entry.direction or "library", *entry.archs, *entry.operators, *entry.spaces, entry.must_move]
    tags += [c.signal for c in entry.signature]
    guidance = [*entry.steps, *entry.constraints, *entry.pitfalls, entry.expected, *entry.parameters]
    return {
        "slug": entry.id,
        "title": entry.title,
        "tags": " ".join(tags),
        "guidance": "\n".join(guidance),
        "body": entry.body,
    }


def _place(arch: str | None) -> str | None:
    """`sm_90a` of a whole target, `cpu` and architectures as they are."""
    return (architecture(arch) or arch) if arch else None


def _limit(limit: int) -> int:
    if not 1 <= limit <= MAX_LIMIT:
        raise RequestError(f"limit is {limit}.", valid=[f"1 to {MAX_LIMIT}"])
    return limit


_Name = TypeVar("_Name", Direction, Space)


def _member(names: type[_Name], value: str | None) -> _Name | None:
    """A member by its name. Raises RequestError listing the valid ones."""
    try:
        return None if value is None else names(value)
    except ValueError as error:
        raise RequestError(f"{value!r} is not a {names.__name__.lower()}.", valid=[n.value for n in names]) from error
