"""Runs, rounds and decisions."""

from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.plan import Decision
from hiera_mcp.model.run import Budget, Run
from hiera_mcp.model.switches import Switches, switches_of
from hiera_mcp.store.database import Connection, Row, Transaction, new_id, now


class RecordedDecision(Model):
    """A decision with its place in the trajectory."""

    id: Text
    run_id: Text
    round: int
    at: Text
    decision: Decision


class Runs(Connection):
    """Queries about runs. A round is a plan and the candidates that follow it."""

    def start_run(self, contract_id: str, goal: str, budget: Budget, switches: Switches | None = None) -> Run:
        """Open a run in its first round, in its fixed space if it has one; NotFoundError when there is no such contract."""
        switches = switches or Switches()
        self.one("contracts", contract_id, "contract")
        run_id = new_id("r")
        row = {
            "id": run_id,
            "contract_id": contract_id,
            "goal": goal,
            "max_rounds": budget.rounds,
            "candidates_per_round": budget.candidates_per_round,
            "state": "open",
            "round": 1,
            "space": switches.fixed_space,
            "switches": " ".join(switches.words),
            "created_at": now(),
        }
        with self.write() as tx:
            tx.insert("runs", row)
            tx.insert("rounds", {"run_id": run_id, "round": 1, "opened_at": now()})
            tx.log("run_started", {"contract_id": contract_id, "goal": goal, "plan": [*switches.words]}, run_id)
        return self.run(run_id)

    def run(self, run_id: str) -> Run:
        """The run with this id; NotFoundError when there is none."""
        return _run(self.one("runs", run_id, "run"))

    def runs(self, limit: int = 50) -> tuple[Run, ...]:
        """The newest runs, the newest first."""
        return tuple(_run(row) for row in self.rows("SELECT * FROM runs ORDER BY rowid DESC LIMIT ?", [limit]))

    def finish_run(self, run_id: str) -> Run:
        """Close a run. Closing it again changes nothing."""
        self.run(run_id)
        with self.write() as tx:
            sql = "UPDATE runs SET state = 'finished', finished_at = ? WHERE id = ? AND state = 'open'"
            if tx.execute(sql, [now(), run_id]):
                tx.log("run_finished", {}, run_id)
        return self.run(run_id)

    def add_decision(self, run_id: str, decision: Decision) -> RecordedDecision:
        """Record a decision. The first one after candidates of the present round opens the next round.

        Raises:
            RequestError: the run is finished, or its rounds are spent.
        """
        self.run(run_id)
        decision_id = new_id("d")
        with self.write() as tx:
            number = _round_for_decision(tx, run_id)
            tx.insert("decisions", _decision_row(decision_id, run_id, number, decision))
            _apply(tx, run_id, decision)
            data = {"decision_id": decision_id, "kind": decision.kind, "choice": decision.choice}
            tx.log("decided", data, run_id)
        return _decision(self.one("decisions", decision_id, "decision"))

    def decisions(self, run_id: str) -> tuple[RecordedDecision, ...]:
        """All decisions of a run in order."""
        sql = "SELECT * FROM decisions WHERE run_id = ? ORDER BY rowid"
        return tuple(_decision(row) for row in self.rows(sql, [run_id]))

    def set_best(self, run_id: str, candidate_id: str | None) -> None:
        """Say which candidate leads the run; None: none does any more."""
        with self.write() as tx:
            tx.execute("UPDATE runs SET best_candidate_id = ? WHERE id = ?", [candidate_id, run_id])
            tx.log("best_changed", {"candidate_id": candidate_id}, run_id)


def open_run(tx: Transaction, run_id: str) -> Row:
    """The row of an open run, read inside the present transaction; RequestError when it is finished."""
    row = tx.rows("SELECT * FROM runs WHERE id = ?", [run_id])[0]
    if row["state"] != "open":
        raise RequestError(f"Run {run_id} is finished.", todo="Start another one with hiera_run_start.")
    return row


def _round_for_decision(tx: Transaction, run_id: str) -> int:
    run = open_run(tx, run_id)
    number = int(run["round"])
    sql = "SELECT COUNT(*) AS n FROM candidates WHERE run_id = ? AND round = ?"
    if not tx.rows(sql, [run_id, number])[0]["n"]:
        return number
    if number >= run["max_rounds"]:
        raise RequestError(
            f"Run {run_id} has spent its {number} rounds.",
            todo=f"Close it with hiera_run_finish(run_id='{run_id}'), or start a run with more rounds.",
        )
    tx.execute("UPDATE runs SET round = ? WHERE id = ?", [number + 1, run_id])
    tx.insert("rounds", {"run_id": run_id, "round": number + 1, "opened_at": now()})
    tx.log("round_opened", {"round": number + 1}, run_id)
    return number + 1


def _apply(tx: Transaction, run_id: str, decision: Decision) -> None:
    if decision.kind in ("space", "direction"):
        tx.execute(f"UPDATE runs SET {decision.kind} = ? WHERE id = ?", [decision.choice, run_id])


def _decision_row(decision_id: str, run_id: str, number: int, decision: Decision) -> dict[str, object]:
    return {
        "id": decision_id,
        "run_id": run_id,
        "round": number,
        "kind": decision.kind,
        "choice": decision.choice,
        "recommended": decision.recommended,
        "decided_by": decision.decided_by,
        "reason": decision.reason,
        "rubric_version": decision.rubric_version,
        "decision": decision.model_dump_json(),
        "at": now(),
    }


def _decision(row: Row) -> RecordedDecision:
    decision = Decision.model_validate_json(row["decision"])
    return RecordedDecision(id=row["id"], run_id=row["run_id"], round=row["round"], at=row["at"], decision=decision)


def _run(row: Row) -> Run:
    return Run(
        id=row["id"],
        contract_id=row["contract_id"],
        goal=row["goal"],
        budget=Budget(rounds=row["max_rounds"], candidates_per_round=row["candidates_per_round"]),
        state=row["state"],
        round=row["round"],
        space=row["space"],
        direction=row["direction"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
        best_candidate_id=row["best_candidate_id"],
        switches=switches_of(row["switches"].split()),
    )
