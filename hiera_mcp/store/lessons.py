"""Lessons: what runs taught, each with the evaluations that prove it."""

import json
from collections.abc import Sequence

from hiera_mcp.errors import RequestError
from hiera_mcp.model.evaluation import Interval, Status
from hiera_mcp.model.memory import Lesson, Proof
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.model.words import phrases
from hiera_mcp.store.database import Connection, Row, new_id, now

_SEARCH = """
SELECT lessons.* FROM lessons JOIN lessons_fts ON lessons.rowid = lessons_fts.rowid
WHERE lessons_fts MATCH ?3 AND {filters} ORDER BY lessons_fts.rank LIMIT ?4"""
"""One statement: a search that looks up the schema first, as sqlite-utils' does, costs several times as much."""

_FILTERS = "(?1 IS NULL OR direction IS NULL OR direction = ?1) AND (?2 IS NULL OR space IS NULL OR space = ?2)"

_PROOF = """
SELECT e.id AS evaluation_id, c.id AS candidate_id, t.name AS task, c.space, c.direction, e.status, e.reason, e.device,
    e.speedup, e.speedup_low, e.speedup_high
FROM candidates c JOIN evaluations e ON e.candidate_id = c.id JOIN runs r ON r.id = c.run_id
JOIN contracts k ON k.id = r.contract_id JOIN tasks t ON t.id = k.task_id
WHERE c.id = ? AND e.status != 'not_run' ORDER BY e.rowid DESC LIMIT 1"""
"""The newest verdict on a candidate, and where it was tried."""


class Lessons(Connection):
    """Queries about lessons."""

    @property
    def origin(self) -> str:
        """Random name of this database, given when it was made."""
        return str(self.rows("SELECT id FROM origin")[0]["id"])

    def add_lesson(
        self,
        title: str,
        text: str,
        candidate_ids: Sequence[str],
        direction: Direction | None = None,
        space: Space | None = None,
    ) -> Lesson:
        """Record a lesson, with what the newest verdict on each candidate showed.

        Raises:
            NotFoundError: a candidate does not exist.
            RequestError: no candidate is named, one was never evaluated, or none was tried in the direction or space
                that the lesson is said to be about.
        """
        if not candidate_ids:
            raise RequestError("A lesson needs proof.", todo="Name at least one evaluated candidate.")
        proof = tuple(self._proof(candidate_id) for candidate_id in dict.fromkeys(candidate_ids))
        _check_about("direction", direction, [p.direction for p in proof])
        _check_about("space", space, [p.space for p in proof])
        lesson = Lesson(
            id=new_id("l"),
            title=title,
            text=text,
            candidate_ids=tuple(p.candidate_id for p in proof),
            direction=direction,
            space=space,
            at=now(),
            origin=self.origin,
            proof=proof,
        )
        with self.write() as tx:
            tx.insert("lessons", lesson_row(lesson))
            tx.log("lesson_recorded", {"lesson_id": lesson.id, "title": title}, None)
        return lesson

    def lessons(
        self, query: str = "", limit: int = 20, direction: Direction | None = None, space: Space | None = None
    ) -> tuple[Lesson, ...]:
        """Lessons that hold any word of `query`, the best match first; without a query, the newest first.

        A lesson that names no direction or space is about all of them.
        """
        if not self.rows("SELECT 1 FROM lessons LIMIT 1"):  # usual, and a quarter of the time of a search by words
            return ()
        if not query.strip():
            sql = f"SELECT * FROM lessons WHERE {_FILTERS} ORDER BY at DESC, rowid DESC LIMIT ?3"
            return tuple(lesson_of(row) for row in self.rows(sql, [direction, space, limit]))
        words = " OR ".join(phrases(query))
        found = self.rows(_SEARCH.format(filters=_FILTERS), [direction, space, words, limit]) if words else ()
        return tuple(lesson_of(row) for row in found)

    def all_lessons(self) -> tuple[Lesson, ...]:
        """Every lesson, imported ones too, in the order in which they came."""
        return tuple(lesson_of(row) for row in self.rows("SELECT * FROM lessons ORDER BY rowid"))

    def _proof(self, candidate_id: str) -> Proof:
        self.one("candidates", candidate_id, "candidate")
        found = self.rows(_PROOF, [candidate_id])
        if not found:
            raise RequestError(
                f"Candidate {candidate_id} was never evaluated.",
                todo="A lesson rests on candidates that hiera_candidates_evaluate has judged.",
            )
        return _proof_of(found[0])


def lesson_row(lesson: Lesson) -> dict[str, object]:
    """A lesson as its table holds it."""
    plain = {name: getattr(lesson, name) for name in ("id", "title", "text", "direction", "space", "at", "origin")}
    proof = [p.model_dump(mode="json") for p in lesson.proof]
    return {**plain, "candidate_ids": json.dumps(lesson.candidate_ids), "proof": json.dumps(proof)}


def lesson_of(row: Row) -> Lesson:
    """The lesson that a row holds."""
    lists = {name: json.loads(row[name]) for name in ("candidate_ids", "proof")}
    return Lesson.model_validate({name: row[name] for name in Lesson.model_fields} | lists)


def _proof_of(row: Row) -> Proof:
    timed = row["speedup"] is not None
    speedup = Interval(median=row["speedup"], low=row["speedup_low"], high=row["speedup_high"]) if timed else None
    plain = ("candidate_id", "evaluation_id", "task", "space", "direction", "reason", "device")
    return Proof.model_validate({n: row[n] for n in plain} | {"status": Status(row["status"]), "speedup": speedup})


def _check_about(what: str, about: str | None, tried: Sequence[str | None]) -> None:
    """A lesson about a direction or a space rests on a candidate that was tried there."""
    if about is not None and about not in tried:
        places = sorted({str(t) for t in tried if t is not None})
        raise RequestError(
            f"None of the candidates was tried in the {what} {about}.",
            todo=f"Name candidates that were, or another {what}, or none.",
            valid=places,
        )
