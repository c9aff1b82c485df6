"""Full text of the entries in SQLite's FTS5, in memory: which entries hold the words of a query, the best first.

bm25 is a sum over the words of a query, and the entries never change. So FTS5 is asked about one word at a time, the
answers are remembered, and a query of known words is a sum of a few of them.
"""

import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hiera_mcp.model.knowledge import Entry
from hiera_mcp.model.words import phrases

COLUMNS = ("slug", "title", "tags", "guidance", "body")
COLUMN_WEIGHTS = "0, 6.0, 4.0, 2.0, 1.0"
"""bm25 weights of COLUMNS: a word in the title says more than one in the text."""
MAX_RANKED = 1000
"""Entries whose relevance one search computes at most; it bounds its time, about a microsecond for each."""
MAX_WORDS = 32
"""Words of a query that are looked for; further ones are passed over."""
KNOWN_WORDS = 4096
"""Words whose frequency and ranking are remembered; a ranking is at most 12 kB."""
COMMON = 200
"""A word in so many entries takes long to rank, a microsecond for each."""
_SIGNS = re.compile("[^a-z0-9]+")
_RANKED = f"""
SELECT entry, relevance FROM (
    SELECT words.rowid AS entry, -bm25(words, {COLUMN_WEIGHTS}) AS relevance
    FROM words JOIN groups ON groups.entry = words.rowid
    WHERE words MATCH ? AND {{within}} ORDER BY words.rowid LIMIT {MAX_RANKED})
ORDER BY relevance DESC, entry"""
Groups = tuple[int, ...] | None
"""Those that pass the filters; None: all."""


class Ranking(NamedTuple):
    """Entries that hold a word, with their bm25."""

    numbers: NDArray[np.uint32]
    relevance: NDArray[np.float64]


class TextIndex:
    """Words of numbered entries. Each belongs to a group of those that every filter treats alike.

    Filled once, read from any thread.
    """

    def __init__(self, entries: Sequence[tuple[Entry, int]]) -> None:
        """`entries`: each with its group; its number is its place."""
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._frequency = lru_cache(KNOWN_WORDS)(self._count)
        self._ranking = lru_cache(KNOWN_WORDS)(self._ranked)
        self._group_of = np.array([group for _, group in entries], np.uint32)
        self._fill(entries)

    def search(self, query: str, groups: Groups, limit: int) -> list[tuple[int, float]]:
        """Numbers of the entries in `groups` that hold a word of `query`, the best first, with their relevance (bm25).

        Nothing in `query` is syntax.
        """
        words = self._telling([_plain(word) for word in phrases(query)[:MAX_WORDS]])
        if not words:
            return []
        cut = self._frequency(words[0]) > MAX_RANKED  # not all that hold it are ranked: let them be the right ones
        rankings = [self._ranking(word, groups if cut else None) for word in words]
        total, held = np.zeros(len(self._group_of)), np.zeros(len(self._group_of), np.bool_)
        for ranking in rankings:
            total[ranking.numbers] += ranking.relevance
            held[ranking.numbers] = True
        found = np.flatnonzero(held)
        if groups is not None and not cut:
            found = found[np.isin(self._group_of[found], groups)]
        best = found[np.argsort(-total[found], kind="stable")[:limit]]  # ties go by number
        return list(zip(best.tolist(), total[best].tolist(), strict=True))

    def prepare(self) -> None:
        """Rank the common words before anybody waits for it."""
        counts = Counter[str]()
        with self._lock:
            for texts in self._connection.execute(f"SELECT {', '.join(COLUMNS)} FROM words"):
                counts.update(set(_SIGNS.sub(" ", " ".join(texts).lower()).split()))
        for word, count in counts.most_common(KNOWN_WORDS // 2):  # the other half is for those that are asked for
            if count >= COMMON:
                self._frequency(f'"{word}"')
                self._ranking(f'"{word}"', None)

    def _telling(self, words: Sequence[str]) -> Sequence[str]:
        """The rarest words, as many as together occur in MAX_RANKED entries; bm25 weighs common ones least.

        At least one: if even that occurs in more entries, the first ones are searched.
        """
        rarest = sorted((self._frequency(word), word) for word in words)
        totals = accumulate(frequency for frequency, _ in rarest)
        return [
            word
            for n, ((_, word), total) in enumerate(zip(rarest, totals, strict=True))
            if not n or total <= MAX_RANKED
        ]

    def _count(self, word: str) -> int:
        return int(self._read("SELECT count(*) FROM words WHERE words MATCH ?", word)[0][0])

    def _ranked(self, word: str, groups: Groups) -> Ranking:
        """Of at most MAX_RANKED entries."""
        within = "1" if groups is None else f"groups.number IN ({','.join(map(str, groups))})"
        rows = self._read(_RANKED.format(within=within), word)
        return Ranking(np.array([number for number, _ in rows], np.uint32), np.array([r for _, r in rows], np.float64))

    def _read(self, sql: str, word: str) -> list[tuple[int, float]]:
        with self._lock:
            return self._connection.execute(sql, (word,)).fetchall()

    def _fill(self, entries: Sequence[tuple[Entry, int]]) -> None:
        run = self._connection
        run.execute(f"CREATE VIRTUAL TABLE words USING fts5({', '.join(COLUMNS)}, tokenize='porter')")
        run.execute("CREATE TABLE groups (entry INTEGER PRIMARY KEY, number INTEGER NOT NULL)")
        rows = ((number, *_texts(entry)) for number, (entry, _) in enumerate(entries))
        run.executemany(f"INSERT INTO words (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)", rows)
        run.executemany("INSERT INTO groups VALUES (?, ?)", ((n, group) for n, (_, group) in enumerate(entries)))
        run.execute("INSERT INTO words (words) VALUES ('optimize')")
        run.commit()


def _plain(word: str) -> str:
    """The word as the index reads it, to which case and signs mean nothing: of fewer words more are remembered."""
    return f'"{_SIGNS.sub(" ", word.lower()).strip()}"' if word.isascii() else word


def _texts(entry: Entry) -> tuple[str, ...]:
    """One text per column."""
    tags = [entry.id, entry.direction or "library", *entry.archs, *entry.operators, *entry.spaces, entry.must_move]
    tags += [*entry.keywords, *(c.signal for c in entry.signature)]
    guidance = [*entry.steps, *entry.constraints, *entry.pitfalls, entry.expected, *entry.parameters]
    return entry.id, entry.title, " ".join(tags), "\n".join(guidance), entry.body
