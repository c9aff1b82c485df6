"""The knowledge base: entries, found by words, by filters and by how well they fit a situation."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Self, TypeVar

from hiera_mcp.errors import NotFoundError, RequestError
from hiera_mcp.knowledge_base import fit, hardware
from hiera_mcp.knowledge_base.entries import merged, packaged_entries
from hiera_mcp.knowledge_base.text_index import TextIndex
from hiera_mcp.model.knowledge import Entry, Match
from hiera_mcp.model.space import Direction, Space, architecture

MAX_LIMIT = 50
RERANKED = 50
"""So many of the best entries by words are put in order by how they fit as well."""
_ARCH = re.compile(r"^(cpu|sm_\d{2,3}[af]?)$")
_Names = TypeVar("_Names", Direction, Space)


class KnowledgeBase:
    """Entries with search. Immutable after construction; reads are safe from any thread."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = tuple({entry.id: entry for entry in entries}.values())
        self._by_slug = {entry.id: entry for entry in self._entries}
        groups: dict[object, int] = {}
        self._group_of = [groups.setdefault((e.direction, e.spaces, e.archs), len(groups)) for e in self._entries]
        self._kinds = dict(zip(self._group_of, self._entries, strict=True))  # one entry stands for its group
        self._text = TextIndex(list(zip(self._entries, self._group_of, strict=True)))
        self._signatures = fit.Signatures(self._entries)
        self._within = lru_cache(256)(self._groups)

    @classmethod
    def load(cls, own_folder: Path | None = None) -> Self:
        """The shipped entries, and those of a user's folder.

        Raises:
            RequestError: the folder does not exist, a file in it is not a valid entry, or an id in it is that of a
                shipped entry and the file does not say `overrides: true`.
        """
        shipped = packaged_entries()
        return cls(shipped if own_folder is None else merged(shipped, own_folder))

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self._entries

    def prepare(self) -> None:
        """What makes the first searches as fast as later ones; takes about a second for 10,000 entries."""
        self._text.prepare()

    def entry(self, slug: str) -> Entry:
        """Raises NotFoundError with the nearest slugs."""
        found = self._by_slug.get(slug)
        if found is None:
            near = [m.id for m in self.search(slug.replace("-", " "), limit=8)]
            raise NotFoundError(f"No knowledge entry {slug!r}.", valid=near or sorted(self._by_slug))
        return found

    def search(
        self,
        query: str = "",
        direction: Direction | str | None = None,
        space: Space | str | None = None,
        arch: str | None = None,
        limit: int = 5,
    ) -> tuple[Entry, ...]:
        """Entries that hold any word of `query`, the best first (bm25); without a query the first that pass the filters.

        Nothing in `query` is syntax: `cp.async`, `sm_80+`, quotes and operators are plain text. `arch` is `cpu`, `sm_90a`
        or a whole target. Entries about libraries have no direction and pass any direction filter.

        Raises:
            RequestError: an unknown direction, space or architecture, or a limit outside 1 to 50; with the valid ones.
        """
        groups = self._allowed(direction, space, arch)
        numbers = (
            [number for number, _ in self._text.search(query, groups, _checked(limit))]
            if query.strip()
            else self._members(groups)[: _checked(limit)]
        )
        return tuple(self._entries[number] for number in numbers)

    def matching(
        self,
        features: fit.Signals,
        direction: Direction | str | None = None,
        space: Space | str | None = None,
        arch: str | None = None,
        limit: int = 5,
        query: str = "",
    ) -> tuple[Match, ...]:
        """Entries that fit a situation, the best first. `features` maps signals (`SIGNALS`) to values or None.

        The score is that of `fit.score`, and entries whose operators do not occur are left out. With a `query` only
        entries that hold a word of it are considered, and the relevance of each, from 0 to 1 for the most relevant one,
        is added. Ties go by id: the order is reproducible.
        """
        groups, place = self._allowed(direction, space, arch), _place(arch)
        relevance = self._relevance(query, groups) if query.strip() else dict.fromkeys(self._members(groups), 0.0)
        scores = self._signatures.scores(features, place, relevance)
        total = {number: round(score + relevance[number], 4) for number, score in scores.items()}
        best = sorted(total, key=lambda number: (-total[number], self._entries[number].id))[: _checked(limit)]
        return tuple(self._match(number, total[number], features) for number in best)

    def _match(self, number: int, score: float, features: fit.Signals) -> Match:
        entry = self._entries[number]
        return Match(entry=entry, score=score, why=fit.why(entry, features))

    def _relevance(self, query: str, groups: tuple[int, ...] | None) -> dict[int, float]:
        found = self._text.search(query, groups, RERANKED)
        best = max((relevance for _, relevance in found), default=0.0) or 1.0
        return {number: relevance / best for number, relevance in found}

    def _allowed(
        self, direction: Direction | str | None, space: Space | str | None, arch: str | None
    ) -> tuple[int, ...] | None:
        return self._within(_member(Direction, direction), _member(Space, space), _place(arch))

    def _groups(self, direction: Direction | None, space: Space | None, arch: str | None) -> tuple[int, ...] | None:
        """The groups that pass the filters; None: all."""
        if direction is space is arch is None:
            return None
        return tuple(group for group, entry in self._kinds.items() if _passes(entry, direction, space, arch))

    def _members(self, groups: Sequence[int] | None) -> Sequence[int]:
        if groups is None:
            return range(len(self._entries))
        wanted = frozenset(groups)
        return [number for number, group in enumerate(self._group_of) if group in wanted]


def _passes(entry: Entry, direction: Direction | None, space: Space | None, arch: str | None) -> bool:
    return (
        (direction is None or entry.direction in (direction, None))
        and (space is None or entry.allows_space(space))
        and (arch is None or entry.allows_arch(arch))
    )


def _place(arch: str | None) -> str | None:
    """`sm_90a` of a whole target, `cpu` and architectures as they are. Raises RequestError listing the known ones."""
    if not arch:
        return None
    place = architecture(arch) or arch
    if not _ARCH.match(place):
        known = dict.fromkeys(architecture(target) for row in hardware.rows() for target in row.default_for)
        raise RequestError(
            f"{arch!r} is not an architecture.", valid=["cpu", *known, "any other sm_NN, sm_NNa, sm_NNf"]
        )
    return place


def _checked(limit: int) -> int:
    if not 1 <= limit <= MAX_LIMIT:
        raise RequestError(f"limit is {limit}.", valid=[f"1 to {MAX_LIMIT}"])
    return limit


def _member(names: type[_Names], value: str | None) -> _Names | None:
    """A member by its name. Raises RequestError listing the valid ones."""
    try:
        return None if value is None else names(value)
    except ValueError as error:
        raise RequestError(f"{value!r} is not a {names.__name__.lower()}.", valid=[n.value for n in names]) from error
