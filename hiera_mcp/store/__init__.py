"""SQLite through sqlite-utils: everything that must not be lost."""

from hiera_mcp.store.candidates import NewCandidate
from hiera_mcp.store.contracts import ContractSummary
from hiera_mcp.store.memory import Imported
from hiera_mcp.store.runs import RecordedDecision
from hiera_mcp.store.store import Store

__all__ = ["ContractSummary", "Imported", "NewCandidate", "RecordedDecision", "Store"]
