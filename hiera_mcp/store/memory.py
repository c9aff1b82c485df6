"""Memory: the rounds of this database's runs, and rounds and lessons that came from other hosts."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model
from hiera_mcp.model.evaluation import Interval
from hiera_mcp.model.memory import Lesson, Memory, RoundRecord, device_key, floor_as_bound, newest
from hiera_mcp.store.database import Row, Transaction
from hiera_mcp.store.lessons import Lessons, lesson_of, lesson_row

_JUDGED = """
SELECT c.run_id, c.round, c.space, c.direction, c.id AS candidate_id, e.status, e.device, e.speedup, e.speedup_low,
    e.speedup_high, e.candidate_s, e.reference_s, k.floor_seconds, k.task_id, k.target, k.operator_kind, k.floor_bound
FROM candidates c JOIN runs r ON r.id = c.run_id JOIN contracts k ON k.id = r.contract_id
JOIN evaluations e ON e.rowid = (SELECT MAX(rowid) FROM evaluations WHERE candidate_id = c.id)
WHERE c.run_id IN (
    SELECT run_id FROM candidates JOIN evaluations n ON n.candidate_id = candidates.id WHERE n.rowid > ?
    UNION SELECT run_id FROM candidates JOIN profiles p ON p.candidate_id = candidates.id WHERE p.rowid > ?)
ORDER BY c.run_id, c.round, c.rowid"""
"""The candidates with a result, each with its newest one, of all runs with an evaluation or a profile since."""

_NEWEST = """
SELECT (SELECT coalesce(MAX(rowid), 0) FROM evaluations) AS evaluation,
    (SELECT coalesce(MAX(rowid), 0) FROM profiles) AS profile,
    (SELECT coalesce(MAX(n), 0) FROM events WHERE run_id IS NULL) AS event"""
"""How far the database has come; an import leaves an event without a run."""


class Imported(Model):
    """What an import changed."""

    rounds: int
    """Rounds that were new, or had more verdicts than before."""
    lessons: int
    known: int
    """Rounds and lessons that were here already, or are this database's own."""


class _Recalled:
    """What was read before, so that only runs that went on are read again."""

    def __init__(self) -> None:
        self.upto = {"evaluation": 0, "profile": 0, "event": -1}
        self.own: dict[str, tuple[RoundRecord, ...]] = {}
        self.imported: tuple[RoundRecord, ...] = ()
        self.all: tuple[RoundRecord, ...] = ()


class Memories(Lessons):
    """Queries about memory."""

    def __init__(self, path: Path, blobs: Path) -> None:
        super().__init__(path, blobs)
        self._recalled = _Recalled()

    def remembered(self, without_run: str | None = None) -> tuple[RoundRecord, ...]:
        """Every round with a verdict, of runs of this database and of imported ones; those of one run may be left out.

        Open runs count as far as they have come: a round with a verdict is a fact, however the run goes on.
        """
        with self._lock:
            self._recall()
            return tuple(r for r in self._recalled.all if r.run_id != without_run)

    def _recall(self) -> None:
        """Read what is new since the last time."""
        known, upto = self._recalled, self.rows(_NEWEST)[0]
        if upto == known.upto:
            return
        if upto["event"] != known.upto["event"]:
            rows = self.rows("SELECT record FROM rounds_imported")
            known.imported = tuple(RoundRecord.model_validate_json(row["record"]) for row in rows)
        changed = self.rows(_JUDGED, [known.upto["evaluation"], known.upto["profile"]])
        bottlenecks, origin = self._bottlenecks(), self.origin
        for run_id, rows in groupby(changed, key=lambda row: row["run_id"]):
            judged = [row for row in rows if row["status"] != "not_run"]
            known.own[run_id] = tuple(_rounds(judged, bottlenecks, origin))
        known.all = newest((*(r for run in known.own.values() for r in run), *known.imported))
        known.upto = upto

    def export_memory(self) -> Memory:
        """All rounds and lessons, imported ones too, in a fixed order; no sources of candidates."""
        lessons = sorted(self.all_lessons(), key=lambda lesson: lesson.id)
        return Memory(rounds=self.remembered(), lessons=tuple(lessons))

    def import_memory(self, memory: Memory) -> Imported:
        """Merge; doing so again, or in another order, changes nothing.

        Raises:
            RequestError: a lesson differs from the one of the same id that is here. Nothing is imported then.
        """
        with self.write() as tx:
            rounds = _merge_rounds(tx, memory.rounds)
            lessons = sum(_merge_lesson(tx, lesson) for lesson in memory.lessons)
            known = len(memory.rounds) + len(memory.lessons) - rounds - lessons
            tx.log("memory_imported", {"rounds": rounds, "lessons": lessons}, None)
        return Imported(rounds=rounds, lessons=lessons, known=known)

    def _bottlenecks(self) -> Mapping[str, str]:
        """Candidate → what bounds it, by its newest profile that says so."""
        sql = "SELECT candidate_id, bottleneck FROM profiles WHERE bottleneck != 'unknown' ORDER BY rowid"
        return {row["candidate_id"]: row["bottleneck"] for row in self.rows(sql)}


def _rounds(judged: Sequence[Row], bottlenecks: Mapping[str, str], origin: str) -> Iterator[RoundRecord]:
    """The rounds of one run, from its candidates with a verdict in order."""
    measured_on = (row["device"] for row in judged if row["device"] and row["status"] == "passed")
    device = next(measured_on, None)
    before: Row | None = None
    for _, part in groupby(judged, key=lambda row: row["round"]):
        mine = list(part)
        best = _best(mine)
        yield _record(mine, best, before, bottlenecks, {"origin": origin, "device": device or mine[0]["target"]})
        before = _best([row for row in (before, best) if row])


def _record(
    rows: Sequence[Row], best: Row | None, before: Row | None, bottlenecks: Mapping[str, str], common: Mapping[str, str]
) -> RoundRecord:
    one = rows[0]
    floor = floor_as_bound(one["floor_bound"])
    failures = Counter(row["status"] for row in rows if row["status"] != "passed")
    facts = {name: one[name] for name in ("run_id", "round", "task_id", "operator_kind", "space", "direction")}
    return RoundRecord.model_validate(
        {
            **facts,
            "origin": common["origin"],
            "device": device_key(one["target"], common["device"]),
            "bound": floor if before is None else bottlenecks.get(before["candidate_id"], floor),
            "candidates": len(rows),
            "failures": dict(sorted(failures.items())),
            "room": _room(before, best, one["floor_seconds"]),
            "best": best and _interval(best),
            "before": before and _interval(before),
        }
    )


def _room(before: Row | None, best: Row | None, floor_s: float) -> float | None:
    """From the candidate of before, or from eager PyTorch as it was timed beside the round's best, down to the floor."""
    start: float | None = before["candidate_s"] if before else best["reference_s"] if best else None
    return max(0.0, math.log(start / floor_s)) if start and floor_s > 0 else None


def _best(rows: Sequence[Row]) -> Row | None:
    """By the rule of planning/parents.py: the greatest lower bound, the earlier one when two are equal."""
    return max((row for row in rows if row["speedup"] is not None), key=lambda row: row["speedup_low"], default=None)


def _interval(row: Row) -> Interval:
    return Interval(median=row["speedup"], low=row["speedup_low"], high=row["speedup_high"])


def _merge_rounds(tx: Transaction, records: Iterable[RoundRecord]) -> int:
    """How many rounds were new or went further."""
    own = {row["id"] for row in tx.rows("SELECT id FROM runs")}
    rows = tx.rows("SELECT record FROM rounds_imported")
    known = {r.key: r for r in (RoundRecord.model_validate_json(row["record"]) for row in rows)}
    merged = newest((*known.values(), *(r for r in records if r.run_id not in own)))
    changed = [r for r in merged if r != known.get(r.key)]
    for record in changed:
        tx.execute("DELETE FROM rounds_imported WHERE origin = ? AND run_id = ? AND round = ?", record.key)
        tx.insert("rounds_imported", _row(record))
    return len(changed)


def _row(record: RoundRecord) -> dict[str, object]:
    columns = ("origin", "run_id", "round", "task_id", "operator_kind", "bound", "device", "space", "direction")
    return {**{name: getattr(record, name) for name in columns}, "record": record.model_dump_json()}


def _merge_lesson(tx: Transaction, lesson: Lesson) -> bool:
    """Whether it was new."""
    row = lesson_row(lesson)
    known = tx.rows("SELECT * FROM lessons WHERE id = ?", [lesson.id])
    if not known:
        tx.insert("lessons", row)
        return True
    if lesson_of(known[0]) != lesson:
        raise RequestError(
            f"Lesson {lesson.id} differs from the one that is here under this id.",
            todo="A lesson never changes: the file was edited. Give a changed lesson to hiera_lesson_record as a new one.",
        )
    return False
