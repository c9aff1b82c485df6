"""Text for people: a progress line, tables, numbers with units."""

import shutil
import sys
import textwrap
import time
from collections.abc import Sequence

from hiera_mcp.model.evaluation import Interval

PLAIN_PAUSE_S = 2.0
"""Without a terminal, progress is printed at most this often, unless a command wants it otherwise."""


class ProgressLine:
    """One line on stderr that is rewritten in place; without a terminal, a line every `pause_s` seconds at most."""

    def __init__(self, pause_s: float = PLAIN_PAUSE_S) -> None:
        self._pause_s = pause_s
        self._live = sys.stderr.isatty()
        self._last = ""
        self._next = 0.0

    def show(self, message: str, fraction: float | None) -> None:
        text = message if fraction is None else f"{message} ({fraction:.0%})"
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[2K{text[:width]}")
            sys.stderr.flush()
        elif message != self._last and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._pause_s
            print(f"… {message}", file=sys.stderr, flush=True)
        self._last = message

    def note(self, message: str) -> None:
        """What only somebody at a terminal needs to know."""
        if self._live:
            self.show(message, None)

    def clear(self) -> None:
        """Make room for other output."""
        if self._live:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def duration(seconds: float | None) -> str:
    """A time with three digits and a fitting unit; a dash for none."""
    if seconds is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"


def _three_digits(value: float) -> str:
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def ratio(interval: Interval | None) -> str:
    """A speed-up with its 95 % confidence interval."""
    if interval is None:
        return "–"
    return f"{interval.median:.2f}× [{interval.low:.2f}, {interval.high:.2f}]"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns; the head is underlined."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]]
    return [lines[0], "  ".join("─" * w for w in widths), *lines[1:]]


def wrapped(text: str, indent: str) -> list[str]:
    """Text in lines that fit the terminal, each with an indent."""
    width = max(40, min(110, shutil.get_terminal_size((110, 24)).columns))
    return textwrap.wrap(" ".join(text.split()), width, initial_indent=indent, subsequent_indent=indent)
