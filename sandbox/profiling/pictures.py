"""A profile as pictures: its place under the roofs, and what its warps waited for. Pure: SVG text, readable in light and
dark."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from hiera_mcp.model.profile import Launch, Roofline, Stall

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 104, 24, 48, 52
MOST_BARS = 8
_STYLE = """<style>
 .paper { fill: #ffffff } text { fill: #1f2328; font: 12px system-ui, sans-serif } .title { font-size: 15px }
 .line, .grid { fill: none; stroke: #57606a } .grid { stroke-width: .5; opacity: .35 } .line { stroke-width: 1.5 }
 .roof { fill: none; stroke: #0969da; stroke-width: 2.5 } .bar, .dot { fill: #bc4c00 } .goal { fill: #0969da }
 @media (prefers-color-scheme: dark) {
  .paper { fill: #0d1117 } text { fill: #e6edf3 } .line, .grid { stroke: #8b949e }
  .roof { stroke: #58a6ff } .goal { fill: #58a6ff } .bar, .dot { fill: #f0883e } }
</style>"""


def roofline_svg(roofline: Roofline, title: str) -> str:
    """Achieved and attainable FLOP/s over FLOP per byte, both on logarithmic axes."""
    axes = _Axes.around(roofline)
    return _svg(title, [*_grid(axes), *_roof(roofline, axes), *_points(roofline, axes)])


def stalls_svg(stalls: Sequence[Stall], title: str) -> str:
    """The greatest stall reasons as bars, in per cent of the cycles between two instructions of a warp."""
    return _svg(title, list(_bars(stalls[:MOST_BARS])))


def longest(launches: Sequence[Launch]) -> Launch | None:
    """The launch that takes the greatest share."""
    return max(launches, key=lambda launch: launch.share, default=None)


class _Axes:
    """Decades of both axes, and where a value lies."""

    def __init__(self, x: tuple[int, int], y: tuple[int, int]) -> None:
        self.x, self.y = x, y

    @classmethod
    def around(cls, r: Roofline) -> "_Axes":
        ridge = r.peak_flops / r.bandwidth
        xs, ys = [r.intensity, ridge, *_moved_intensity(r)], [r.achieved_flops, r.peak_flops]
        return cls(_decades(xs), _decades(ys))

    def at(self, x: float, y: float) -> tuple[float, float]:
        return LEFT + self._part(x, self.x) * _inner_width(), TOP + (1 - self._part(y, self.y)) * _inner_height()

    def _part(self, value: float, decades: tuple[int, int]) -> float:
        low, high = decades
        return min(1.0, max(0.0, (math.log10(value) - low) / (high - low)))


def _decades(values: Sequence[float]) -> tuple[int, int]:
    logs = [math.log10(v) for v in values if v > 0]
    return math.floor(min(logs) - 0.3), math.ceil(max(logs) + 0.3)


def _moved_intensity(r: Roofline) -> list[float]:
    """FLOP per byte that really went through DRAM."""
    return [r.achieved_flops * r.seconds / r.moved_bytes] if r.moved_bytes else []


def _grid(axes: _Axes) -> Iterator[str]:
    yield f'<rect class="line" x="{LEFT}" y="{TOP}" width="{_inner_width()}" height="{_inner_height()}"/>'
    for power in range(axes.x[0], axes.x[1] + 1):
        x, _ = axes.at(10.0**power, 1)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
        yield _text(x, HEIGHT - BOTTOM + 18, f"{10.0**power:g}", "middle")
    for power in range(axes.y[0], axes.y[1] + 1):
        _, y = axes.at(1, 10.0**power)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        yield _text(LEFT - 8, y + 4, f"{quantity(10.0**power)}FLOP/s", "end")
    yield _text(LEFT + _inner_width() / 2, HEIGHT - 12, "FLOP per byte", "middle")


def _roof(r: Roofline, axes: _Axes) -> Iterator[str]:
    left, right, ridge = 10.0 ** axes.x[0], 10.0 ** axes.x[1], r.peak_flops / r.bandwidth
    start = max(left, 10.0 ** axes.y[0] / r.bandwidth)
    corners = (axes.at(start, r.bandwidth * start), axes.at(ridge, r.peak_flops), axes.at(right, r.peak_flops))
    yield f'<polyline class="roof" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}"/>'
    x, y = corners[-1]
    yield _text(x - 4, y - 6, f"{quantity(r.peak_flops)}FLOP/s", "end")
    near = (start * ridge**3) ** 0.25
    x, y = axes.at(near, r.bandwidth * near)
    yield _text(x - 6, y - 6, f"{quantity(r.bandwidth)}B/s", "end")


def _points(r: Roofline, axes: _Axes) -> Iterator[str]:
    yield _dot(*axes.at(r.intensity, r.attainable_flops), "goal", f"floor {seconds(r.floor_seconds)}", (-8, -8))
    yield _dot(*axes.at(r.intensity, r.achieved_flops), "dot", f"this call {seconds(r.seconds)}", (8, 18))
    for intensity in _moved_intensity(r):
        yield _dot(*axes.at(intensity, r.achieved_flops), "dot", "by bytes moved", (8, 34))


def _dot(x: float, y: float, kind: str, label: str, shift: tuple[int, int]) -> str:
    right, down = shift
    text = _text(x + right, y + down, label, "start" if right > 0 else "end")
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>{text}'


def _bars(stalls: Sequence[Stall]) -> Iterator[str]:
    if not stalls:
        yield _text(LEFT, TOP + 24, "No stall was counted.")
    left, height = 160, min(36.0, _inner_height() / max(1, len(stalls)))
    for i, stall in enumerate(stalls):
        y, width = TOP + i * height, (WIDTH - left - 80) * stall.share
        yield _text(left - 8, y + height * 0.6, stall.reason, "end")
        yield f'<rect class="bar" x="{left}" y="{y + 4:.1f}" width="{max(width, 1):.1f}" height="{height - 8:.1f}"/>'
        yield _text(left + width + 8, y + height * 0.6, f"{stall.share:.0%} ({stall.cycles:.1f} cycles)")


def _svg(title: str, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    paper = f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>'
    name = f"<title>{escape(title)}</title>"
    caption = f'<text class="title" x="{WIDTH / 2}" y="28" text-anchor="middle">{escape(title[:90])}</text>'
    return "\n".join((head, name, _STYLE, paper, caption, *parts, "</svg>\n"))


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _inner_width() -> int:
    return WIDTH - LEFT - RIGHT


def _inner_height() -> int:
    return HEIGHT - TOP - BOTTOM


def quantity(value: float) -> str:
    """A number with a prefix, three digits: `4.8 T`."""
    for prefix, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value:.3g} "


def seconds(value: float) -> str:
    """A time with a unit, three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
