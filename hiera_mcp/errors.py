"""All errors of the project, one root.

HieraError
├── TaskError              the reference cannot become a contract, or lets no candidate be judged; says what to change in it
├── RequestError           what the caller asked for does not exist or is not legal; says the valid values
│   ├── NotFoundError      no such contract, run, candidate, job or artifact
│   └── GateError          a gate of the planner forbids the choice
├── SandboxError           we failed, not the candidate; never counts against a candidate
│   ├── NoIsolationError   no isolation backend passes its self-check on this host
│   ├── ToolchainError     a compiler or tool that the work needs is missing
│   └── LostError          a process of ours (launcher, judge) ended unexpectedly
└── StoreError             the database cannot be opened, migrated or written

A candidate that fails is not an error but an Evaluation. Every message says what failed and what to do next; `valid`
holds the values that would have been accepted.
"""

from collections.abc import Sequence


class HieraError(Exception):
    """Root of all errors. `str(error)` is complete by itself: what failed, what to do, the valid values."""

    kind = "error"

    def __init__(self, what: str, *, todo: str = "", valid: Sequence[str] = ()) -> None:
        self.what = what
        self.todo = todo
        self.valid = tuple(valid)
        super().__init__(self.message())

    def message(self) -> str:
        parts = [self.what.rstrip()]
        if self.todo:
            parts.append(self.todo)
        if self.valid:
            parts.append("Valid: " + ", ".join(self.valid) + ".")
        return " ".join(parts)

    def as_dict(self) -> dict[str, object]:
        """Plain data, for crossing a process boundary; `error_from_dict` is the way back."""
        return {"kind": self.kind, "what": self.what, "todo": self.todo, "valid": list(self.valid)}


class TaskError(HieraError):
    kind = "task"


class RequestError(HieraError):
    kind = "request"


class NotFoundError(RequestError):
    kind = "not_found"


class GateError(RequestError):
    kind = "gate"


class SandboxError(HieraError):
    kind = "sandbox"


class NoIsolationError(SandboxError):
    kind = "no_isolation"


class ToolchainError(SandboxError):
    kind = "toolchain"


class LostError(SandboxError):
    kind = "lost"


class StoreError(HieraError):
    kind = "store"


_BY_KIND: dict[str, type[HieraError]] = {
    cls.kind: cls
    for cls in (
        TaskError,
        RequestError,
        NotFoundError,
        GateError,
        SandboxError,
        NoIsolationError,
        ToolchainError,
        LostError,
        StoreError,
    )
}


def error_from_dict(data: dict[str, object]) -> HieraError:
    """The error that `as_dict` described; an unknown kind becomes a plain HieraError."""
    cls = _BY_KIND.get(str(data.get("kind")), HieraError)
    valid = data.get("valid")
    names = [str(v) for v in valid] if isinstance(valid, list) else []  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return cls(str(data.get("what", "unknown error")), todo=str(data.get("todo", "")), valid=names)
