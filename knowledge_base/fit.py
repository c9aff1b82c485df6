"""How well entries fit a situation: their signatures, held against the signals that the planner has read."""

from collections.abc import Iterable, Mapping, Sequence

from hiera_mcp.model.knowledge import Condition, Entry, SignalValue

Signals = Mapping[str, SignalValue]
ANY_OPERATOR = 0.5
"""The operators' part of the score for an entry that is for any, and for every entry when no share is known."""
EXACT_ARCH = 0.1
"""What an entry gets that was written for exactly this architecture."""


class Signatures:
    """The signatures of numbered entries. Entries have many conditions in common; each is judged once per situation."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        numbers: dict[Condition, int] = {}
        self._entries = entries
        self._conditions = [[numbers.setdefault(c, len(numbers)) for c in entry.signature] for entry in entries]
        self._distinct = tuple(numbers)
        self._operators = {entry.operators for entry in entries}

    def scores(self, signals: Signals, arch: str | None, among: Iterable[int]) -> dict[int, float]:
        """Number → score of those `among` the entries whose operators occur in the task; see `score`."""
        verdicts = [_verdict(condition, signals) for condition in self._distinct]
        shares = {operators: operator_share(operators, signals) for operators in self._operators}
        found: dict[int, float] = {}
        for number in among:
            entry, conditions = self._entries[number], self._conditions[number]
            if share := shares[entry.operators]:
                held = sum([verdicts[c] for c in conditions]) / len(conditions)
                found[number] = round(held + share + _exact(entry, arch), 4)
        return found


def score(entry: Entry, signals: Signals, arch: str | None = None) -> float | None:
    """How well one entry fits; None when none of its operators occurs in the task.

    Share of its conditions that hold, minus the share that fails, plus the share of the reference's time in its operators,
    plus a tenth when it was written for exactly this architecture. A condition that cannot be read counts for nothing.
    """
    return Signatures([entry]).scores(signals, arch, [0]).get(0)


def operator_share(operators: Sequence[str], signals: Signals) -> float:
    """Share of the reference's time in some kinds of operators."""
    shares = [signals.get(f"{kind}_share") for kind in operators]
    known = [float(s) for s in shares if isinstance(s, int | float)]
    return min(1.0, sum(known)) if known and "any" not in operators else ANY_OPERATOR


def why(entry: Entry, signals: Signals) -> str:
    """Which conditions hold, fail and cannot be read, with the values read."""
    told: dict[str, list[str]] = {"holds": [], "fails": [], "unknown": []}
    for c in entry.signature:
        holds = c.holds(signals)
        seen = "" if holds is None else f" ({_shown(signals.get(c.signal))})"
        told["unknown" if holds is None else "holds" if holds else "fails"].append(f"{c}{seen}")
    return "; ".join(f"{name}: {', '.join(parts)}" for name, parts in told.items() if parts)


def _verdict(condition: Condition, signals: Signals) -> int:
    holds = condition.holds(signals)
    return 0 if holds is None else 1 if holds else -1


def _exact(entry: Entry, arch: str | None) -> float:
    return EXACT_ARCH if arch is not None and arch != "cpu" and arch in entry.archs else 0.0


def _shown(value: SignalValue) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value).lower()
