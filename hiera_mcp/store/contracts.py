"""Contracts and their files."""

import json
from collections.abc import Mapping

from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.memory import dominant_kind
from hiera_mcp.model.space import Target
from hiera_mcp.store.database import Connection, Transaction, now


class ContractSummary(Model):
    """One line of the list of contracts."""

    id: Text
    task: Text
    target: Target
    created_at: Text


class Contracts(Connection):
    """Queries about contracts."""

    def put_contract(self, contract: Contract, files: Mapping[str, str]) -> None:
        """Store a contract and its fixed files. Storing the same contract again changes nothing but a floor that was
        measured lower: other work on a host can only raise what is measured.
        """
        shas = {name: self.blobs.put(text.encode()) for name, text in files.items()}
        source = self.blobs.put(contract.task.source.encode())
        with self.write() as tx:
            if tx.rows("SELECT 1 FROM contracts WHERE id = ?", [contract.id]):
                _lower_floor(tx, contract)
                return
            if not tx.rows("SELECT 1 FROM tasks WHERE id = ?", [contract.task.id]):
                task = {"id": contract.task.id, "name": contract.task.name, "source_sha256": source}
                tx.insert("tasks", {**task, "created_at": now()})
            tx.insert(
                "contracts",
                {
                    "id": contract.id,
                    "task_id": contract.task.id,
                    "target": contract.target,
                    "precision": contract.precision,
                    "floor_seconds": contract.floor.seconds,
                    "floor_bound": contract.floor.bound,
                    "operator_kind": dominant_kind(contract.features),
                    "contract": contract.model_dump_json(),
                    "files": json.dumps(shas),
                    "created_at": now(),
                },
            )
            tx.log("contract_built", {"contract_id": contract.id, "task": contract.task.name}, None)

    def contract(self, contract_id: str) -> Contract:
        """The contract with this id; NotFoundError when there is none."""
        return Contract.model_validate_json(self.one("contracts", contract_id, "contract")["contract"])

    def contract_files(self, contract_id: str) -> dict[str, str]:
        """The fixed files of a contract: name → text."""
        shas = json.loads(self.one("contracts", contract_id, "contract")["files"])
        return {name: self.blobs.get(sha).decode() for name, sha in shas.items()}

    def contracts(self) -> tuple[ContractSummary, ...]:
        """All contracts, the newest first."""
        sql = """SELECT c.id, t.name AS task, c.target, c.created_at FROM contracts c JOIN tasks t ON t.id = c.task_id
            ORDER BY c.rowid DESC"""
        return tuple(ContractSummary.model_validate(row) for row in self.rows(sql))


def _lower_floor(tx: Transaction, contract: Contract) -> None:
    floor = contract.floor
    values = [floor.seconds, floor.bound, contract.model_dump_json(), contract.id, floor.seconds]
    sql = "UPDATE contracts SET floor_seconds = ?, floor_bound = ?, contract = ? WHERE id = ? AND floor_seconds > ?"
    if tx.execute(sql, values):
        tx.log("floor_lowered", {"contract_id": contract.id, "seconds": contract.floor.seconds}, None)
