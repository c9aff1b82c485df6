"""Full text of the entries in SQLite's FTS5, in memory: which entries hold the words of a query, the best first."""

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

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
"""Words whose frequency is remembered."""
_RANKED = f"""
SELECT entry, relevance FROM (
    SELECT words.rowid AS entry, -bm25(words, {COLUMN_WEIGHTS}) AS relevance
    FROM words JOIN groups ON groups.entry = words.rowid
    WHERE words MATCH ? AND {{within}} LIMIT {MAX_RANKED})
ORDER BY relevance DESC, entry LIMIT ?"""


class TextIndex:
    """Words of numbered entries. Each belongs to a group of those that every filter treats alike.

    Filled once, read from any thread.
    """

    def __init__(self, entries: Sequence[tuple[Entry, int]]) -> None:
        """`entries`: each with its group; its number is its place."""
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._frequency = lru_cache(KNOWN_WORDS)(self._count)
        self._fill(entries)

    def search(self, query: str, groups: Iterable[int] | None, limit: int) -> list[tuple[int, float]]:
        """Numbers of the entries in `groups` (None: in any) that hold a word of `query`, with their relevance (bm25).

        Nothing in `query` is syntax.
        """
        words = self._telling(phrases(query)[:MAX_WORDS])
        if not words:
            return []
        within = "1" if groups is None else f"groups.number IN ({','.join(map(str, groups))})"
        return self._read(_RANKED.format(within=within), (" OR ".join(words), limit))

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
        return int(self._read("SELECT count(*) FROM words WHERE words MATCH ?", (word,))[0][0])

    def _read(self, sql: str, values: Sequence[object]) -> list[tuple[int, float]]:
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def _fill(self, entries: Sequence[tuple[Entry, int]]) -> None:
        run = self._connection
        run.execute(f"CREATE VIRTUAL TABLE words USING fts5({', '.join(COLUMNS)}, tokenize='porter')")
        run.execute("CREATE TABLE groups (entry INTEGER PRIMARY KEY, number INTEGER NOT NULL)")
        rows = ((number, *_texts(entry)) for number, (entry, _) in enumerate(entries))
        run.executemany(f"INSERT INTO words (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)", rows)
        run.executemany("INSERT INTO groups VALUES (?, ?)", ((n, group) for n, (_, group) in enumerate(entries)))
        run.execute("INSERT INTO words (words) VALUES ('optimize')")
        run.commit()


def _texts(entry: Entry) -> tuple[str, ...]:
    """One text per column."""
    tags = [entry.id, entry.direction or "library", *entry.archs, *entry.operators, *entry.spaces, entry.must_move]
    tags += [*entry.keywords, *(c.signal for c in entry.signature)]
    guidance = [*entry.steps, *entry.constraints, *entry.pitfalls, entry.expected, *entry.parameters]
    return entry.id, entry.title, " ".join(tags), "\n".join(guidance), entry.body
