"""Lessons: what runs taught, each with the candidates that prove it."""

import json
from collections.abc import Sequence

from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.model.words import phrases
from hiera_mcp.store.database import Connection, Row, new_id, now

_SEARCH = """
SELECT lessons.* FROM lessons JOIN lessons_fts ON lessons.rowid = lessons_fts.rowid
WHERE lessons_fts MATCH ? ORDER BY lessons_fts.rank LIMIT ?"""
"""One statement: a search that looks up the schema first, as sqlite-utils' does, costs several times as much."""


class Lesson(Model):
    """One lesson and its proof."""

    id: Text
    title: Text
    text: Text
    candidate_ids: tuple[str, ...]
    direction: Direction | None
    space: Space | None
    at: Text


class Lessons(Connection):
    """Queries about lessons."""

    def add_lesson(
        self,
        title: str,
        text: str,
        candidate_ids: Sequence[str],
        direction: Direction | None = None,
        space: Space | None = None,
    ) -> Lesson:
        """Record a lesson.

        Raises:
            NotFoundError: a candidate does not exist.
            RequestError: no candidate is named, or one was never evaluated.
        """
        if not candidate_ids:
            raise RequestError("A lesson needs proof.", todo="Name at least one evaluated candidate.")
        for candidate_id in candidate_ids:
            self._check_evaluated(candidate_id)
        row = {"id": new_id("l"), "title": title, "text": text, "candidate_ids": json.dumps(list(candidate_ids))}
        with self.write() as tx:
            tx.insert("lessons", {**row, "direction": direction, "space": space, "at": now()})
            tx.log("lesson_recorded", {"lesson_id": row["id"], "title": title}, None)
        return _lesson(self.one("lessons", str(row["id"]), "lesson"))

    def lessons(self, query: str = "", limit: int = 20) -> tuple[Lesson, ...]:
        """Lessons that hold any word of `query`, the best match first; without a query, the newest first."""
        if not query.strip():
            rows = self.rows("SELECT * FROM lessons ORDER BY rowid DESC LIMIT ?", [limit])
            return tuple(_lesson(row) for row in rows)
        words = " OR ".join(phrases(query))
        return tuple(_lesson(row) for row in self.rows(_SEARCH, [words, limit])) if words else ()

    def _check_evaluated(self, candidate_id: str) -> None:
        self.one("candidates", candidate_id, "candidate")
        if not self.rows("SELECT 1 FROM evaluations WHERE candidate_id = ? AND status != 'not_run'", [candidate_id]):
            raise RequestError(
                f"Candidate {candidate_id} was never evaluated.",
                todo="A lesson rests on candidates that hiera_candidates_evaluate has judged.",
            )


def _lesson(row: Row) -> Lesson:
    fields = ("id", "title", "text", "direction", "space", "at")
    return Lesson.model_validate({f: row[f] for f in fields} | {"candidate_ids": json.loads(row["candidate_ids"])})
