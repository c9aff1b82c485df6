"""A report of Nsight Compute as it was read, before it means anything: what both readers give."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["none", "ok", "optimization", "warning", "error"]


@dataclass(frozen=True)
class RawRule:
    """What a rule of NVIDIA's said of a kernel."""

    rule: str
    message: str
    kind: Kind = "none"
    gain_percent: float | None = None
    scope: Literal["kernel", "unit", "unknown"] = "unknown"


@dataclass(frozen=True)
class Instruction:
    """One machine instruction of a kernel, with what was counted at it."""

    offset: int
    """From the first one, in bytes."""
    sass: str
    file: str = ""
    line: int = 0
    """0: not known."""
    counts: Mapping[str, float] = field(default_factory=dict[str, float])
    """executed, threads, sectors, sectors_ideal, wavefronts, wavefronts_ideal; what is absent was not counted."""
    stalls: Mapping[str, float] = field(default_factory=dict[str, float])
    """Stall reason → samples."""

    @property
    def samples(self) -> float:
        return sum(self.stalls.values())


@dataclass(frozen=True)
class RawLaunch:
    """One profiled launch."""

    kernel: str
    metrics: Mapping[str, float]
    """ncu's name → value; what is absent, or is no number, is not here."""
    units: Mapping[str, str] = field(default_factory=dict[str, str])
    rules: tuple[RawRule, ...] = ()
    instructions: tuple[Instruction, ...] = ()


def from_json(data: Mapping[str, Any]) -> tuple[RawLaunch, ...]:
    """The launches in what `child/ncu_reader.py` wrote.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    return tuple(_launch(found) for found in data["launches"])


def _launch(data: Mapping[str, Any]) -> RawLaunch:
    found = data["instructions"]
    first = min((int(i["address"]) for i in found), default=0)
    return RawLaunch(
        kernel=str(data["kernel"]),
        metrics={str(name): float(value) for name, value in data["metrics"].items()},
        units={str(name): str(unit) for name, unit in data["units"].items()},
        rules=tuple(RawRule(**{k: v for k, v in rule.items() if k != "title"}) for rule in data["rules"]),
        instructions=tuple(_instruction(i, first) for i in found),
    )


def _instruction(data: Mapping[str, Any], first: int) -> Instruction:
    named = ("address", "sass", "file", "line", "stalls")
    return Instruction(
        offset=int(data["address"]) - first,
        sass=str(data["sass"]).strip(),
        file=str(data["file"]),
        line=int(data["line"]),
        counts={name: float(value) for name, value in data.items() if name not in named},
        stalls={str(name): float(n) for name, n in data["stalls"].items()},
    )
