"""Candidates, their evaluations and profiles."""

import base64
import json
from collections.abc import Sequence

from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.evaluation import Evaluation, NotRun
from hiera_mcp.model.profile import Prediction, Profile, Profiled
from hiera_mcp.model.run import Candidate
from hiera_mcp.store.database import Connection, Row, Transaction, new_id, now
from hiera_mcp.store.runs import open_run


class NewCandidate(Model):
    """A candidate as it is submitted."""

    name: Text
    sources: dict[str, str]
    parent_id: str | None = None
    idea: str = ""


class Candidates(Connection):
    """Queries about candidates and what became of them."""

    def add_candidates(self, run_id: str, new: Sequence[NewCandidate]) -> tuple[Candidate, ...]:
        """Submit candidates to the present round, in the run's space and direction; all or none.

        Raises:
            RequestError: the run is finished or has no space yet, or the round has too few places left.
            NotFoundError: the run or a parent does not exist.
        """
        self.one("runs", run_id, "run")
        for parent in {c.parent_id for c in new if c.parent_id}:
            self.one("candidates", parent, "candidate")
        shas = [{name: self.blobs.put(text.encode()) for name, text in c.sources.items()} for c in new]
        ids = [new_id("k") for _ in new]
        with self.write() as tx:
            run = open_run(tx, run_id)
            _check_room(tx, run, len(new))
            for candidate_id, candidate, sources in zip(ids, new, shas, strict=True):
                tx.insert("candidates", _candidate_row(candidate_id, run, candidate, sources))
                data = {"candidate_id": candidate_id, "name": candidate.name, "round": run["round"]}
                tx.log("candidate_submitted", data, run_id)
        return tuple(self.candidate(i) for i in ids)

    def candidate(self, candidate_id: str) -> Candidate:
        """The candidate with this id; NotFoundError when there is none."""
        return self._candidate(self.one("candidates", candidate_id, "candidate"))

    def candidates(self, run_id: str) -> tuple[Candidate, ...]:
        """All candidates of a run in order of submission."""
        rows = self.rows("SELECT * FROM candidates WHERE run_id = ? ORDER BY rowid", [run_id])
        return tuple(self._candidate(row) for row in rows)

    def put_outcome(self, candidate_id: str, outcome: Evaluation | NotRun) -> str:
        """Record what became of a candidate; returns the evaluation's id. A later outcome supersedes an earlier one."""
        run_id = self.one("candidates", candidate_id, "candidate")["run_id"]
        evaluation_id = new_id("e")
        row = {"id": evaluation_id, "candidate_id": candidate_id, "at": now()}
        row |= self._evaluation_row(outcome) if isinstance(outcome, Evaluation) else self._not_run_row(outcome)
        with self.write() as tx:
            tx.insert("evaluations", row)
            data = {"candidate_id": candidate_id, "evaluation_id": evaluation_id, "status": row["status"]}
            tx.log("evaluated", data, run_id)
        return evaluation_id

    def outcome(self, candidate_id: str) -> Evaluation | NotRun | None:
        """The newest outcome of a candidate; None while there is none."""
        sql = "SELECT * FROM evaluations WHERE candidate_id = ? ORDER BY rowid DESC LIMIT 1"
        rows = self.rows(sql, [candidate_id])
        return self._outcome(rows[0]) if rows else None

    def outcomes(self, run_id: str) -> dict[str, Evaluation | NotRun]:
        """Candidate id → newest outcome, for all candidates of a run that have one."""
        sql = """SELECT e.* FROM evaluations e JOIN candidates c ON c.id = e.candidate_id
            WHERE c.run_id = ? ORDER BY e.rowid"""
        return {row["candidate_id"]: self._outcome(row) for row in self.rows(sql, [run_id])}

    def put_profile(self, candidate_id: str, found: Profiled) -> None:
        """Record a profile of a candidate, with its files."""
        profile = found.profile
        run_id = self.one("candidates", candidate_id, "candidate")["run_id"]
        row = {"id": new_id("p"), "candidate_id": candidate_id, "bottleneck": profile.bottleneck}
        files = {
            "report_sha256": self.blobs.put(base64.b64decode(found.report)) if found.report else None,
            "listing_sha256": self.blobs.put(found.listing.encode()) if found.listing else None,
        }
        with self.write() as tx:
            tx.insert("profiles", {**row, "profile": profile.model_dump_json(), "at": now(), **files})
            tx.log("profiled", row, run_id)

    def profile(self, candidate_id: str) -> Profile | None:
        """The newest profile of a candidate; None while there is none."""
        sql = "SELECT profile FROM profiles WHERE candidate_id = ? ORDER BY rowid DESC LIMIT 1"
        rows = self.rows(sql, [candidate_id])
        return Profile.model_validate_json(rows[0]["profile"]) if rows else None

    def predictions(self, run_id: str) -> dict[str, Prediction]:
        """Candidate id → what its newest profile says of the prediction of its strategy; only where it says something."""
        sql = """SELECT p.candidate_id, json_extract(p.profile, '$.diff.prediction') AS prediction FROM profiles p
            JOIN candidates c ON c.id = p.candidate_id WHERE c.run_id = ? ORDER BY p.rowid"""
        found = {row["candidate_id"]: row["prediction"] for row in self.rows(sql, [run_id])}
        return {i: Prediction.model_validate_json(text) for i, text in found.items() if text}

    def profile_report(self, candidate_id: str) -> bytes | None:
        """Nsight Compute's report of a candidate's newest profile; None where there is none."""
        return self._profile_file(candidate_id, "report_sha256")

    def profile_listing(self, candidate_id: str) -> str | None:
        """Machine code with samples, of a candidate's newest profile; None where there is none."""
        found = self._profile_file(candidate_id, "listing_sha256")
        return None if found is None else found.decode()

    def _profile_file(self, candidate_id: str, column: str) -> bytes | None:
        sql = f"SELECT {column} FROM profiles WHERE candidate_id = ? ORDER BY rowid DESC LIMIT 1"
        rows = self.rows(sql, [candidate_id])
        return self.blobs.get(rows[0][column]) if rows and rows[0][column] else None

    def _candidate(self, row: Row) -> Candidate:
        sources = {name: self.blobs.get(sha).decode() for name, sha in json.loads(row["sources"]).items()}
        fields = ("id", "run_id", "round", "name", "space", "direction", "parent_id", "idea")
        return Candidate.model_validate({f: row[f] for f in fields} | {"sources": sources})

    def _evaluation_row(self, e: Evaluation) -> dict[str, object]:
        build_log = e.build.log if e.build else ""
        build = e.build.model_copy(update={"log": ""}) if e.build else None
        slim = e.model_copy(update={"log": "", "build": build})
        worst = e.verification.worst if e.verification else None
        return {
            "status": e.status,
            "reason": e.reason,
            "device": e.device.name if e.device else None,
            **_timing_columns(e),
            "margin": worst.error if worst else None,
            "evaluation": slim.model_dump_json(),
            "log_sha256": self.blobs.put(e.log.encode()) if e.log else None,
            "build_log_sha256": self.blobs.put(build_log.encode()) if build_log else None,
        }

    def _not_run_row(self, n: NotRun) -> dict[str, object]:
        slim = n.model_copy(update={"build": n.build.model_copy(update={"log": ""})})
        return {
            "status": "not_run",
            "reason": n.reason,
            "device": n.device.name if n.device else None,
            "evaluation": slim.model_dump_json(),
            "build_log_sha256": self.blobs.put(n.build.log.encode()) if n.build.log else None,
        }

    def _outcome(self, row: Row) -> Evaluation | NotRun:
        data = json.loads(row["evaluation"])
        if row["build_log_sha256"]:
            data["build"]["log"] = self.blobs.get(row["build_log_sha256"]).decode()
        if row["log_sha256"]:
            data["log"] = self.blobs.get(row["log_sha256"]).decode()
        return (NotRun if row["status"] == "not_run" else Evaluation).model_validate(data)


def _timing_columns(e: Evaluation) -> dict[str, object]:
    if e.timing is None:
        return {}
    t = e.timing
    return {
        "candidate_s": t.candidate.median,
        "candidate_s_low": t.candidate.low,
        "candidate_s_high": t.candidate.high,
        "reference_s": t.reference.median,
        "speedup": t.speedup.median,
        "speedup_low": t.speedup.low,
        "speedup_high": t.speedup.high,
    }


def _check_room(tx: Transaction, run: Row, wanted: int) -> None:
    if run["space"] is None:
        raise RequestError("The run has no space yet.", todo=f"Call hiera_plan_space(run_id='{run['id']}') first.")
    sql = "SELECT COUNT(*) AS n FROM candidates WHERE run_id = ? AND round = ?"
    used = tx.rows(sql, [run["id"], run["round"]])[0]["n"]
    left = run["candidates_per_round"] - used
    if wanted > left:
        raise RequestError(
            f"Round {run['round']} has {left} of {run['candidates_per_round']} places left, not {wanted}.",
            todo=f"Plan the next round with hiera_plan_space(run_id='{run['id']}'), or close the run with "
            f"hiera_run_finish(run_id='{run['id']}').",
        )


def _candidate_row(candidate_id: str, run: Row, candidate: NewCandidate, sources: dict[str, str]) -> dict[str, object]:
    return {
        "id": candidate_id,
        "run_id": run["id"],
        "round": run["round"],
        "name": candidate.name,
        "space": run["space"],
        "direction": run["direction"],
        "parent_id": candidate.parent_id,
        "idea": candidate.idea,
        "sources": json.dumps(sources),
        "created_at": now(),
    }
