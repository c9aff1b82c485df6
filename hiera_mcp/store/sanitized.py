"""What compute-sanitizer said of candidates: events of their runs, and the tools' output as blobs."""

import json
from typing import Any

from hiera_mcp.model.sanitizer import Sanitized
from hiera_mcp.store.database import Connection

SANITIZED = "sanitized"
"""Kind of the event; data: candidate_id, found (a Sanitized without its log), log_sha256."""


class SanitizedCandidates(Connection):
    """Queries about it."""

    def put_sanitized(self, candidate_id: str, found: Sanitized) -> None:
        """Record what was said of a candidate. A later result supersedes an earlier one."""
        run_id = self.one("candidates", candidate_id, "candidate")["run_id"]
        log = self.blobs.put(found.log.encode())
        said = found.model_dump(mode="json", exclude={"log"})
        with self.write() as tx:
            tx.log(SANITIZED, {"candidate_id": candidate_id, "found": said, "log_sha256": log}, run_id)

    def sanitized(self, run_id: str) -> dict[str, Sanitized]:
        """Candidate id → newest result, without its log."""
        return {str(d["candidate_id"]): Sanitized.model_validate(d["found"]) for d in self._said(run_id)}

    def sanitizer_log(self, candidate_id: str) -> str | None:
        """What the tools printed when they looked at a candidate the last time; None when they never did."""
        run_id = self.one("candidates", candidate_id, "candidate")["run_id"]
        shas = [str(d["log_sha256"]) for d in self._said(run_id) if d["candidate_id"] == candidate_id]
        return self.blobs.get(shas[-1]).decode() if shas else None

    def _said(self, run_id: str) -> list[dict[str, Any]]:
        rows = self.rows("SELECT data FROM events WHERE run_id = ? AND kind = ? ORDER BY n", [run_id, SANITIZED])
        return [json.loads(row["data"]) for row in rows]
