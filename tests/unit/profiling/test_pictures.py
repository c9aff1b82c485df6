"""Pictures: well-formed, with the values that they show, readable on light and on dark paper."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.model.profile import Roofline, Stall
from hiera_mcp.sandbox.profiling.pictures import HEIGHT, WIDTH, roofline_svg, stalls_svg

PLACE = Roofline(
    seconds=122e-6,
    floor_seconds=56e-6,
    bound="memory",
    intensity=0.25,
    attainable_flops=1.2e12,
    achieved_flops=5.5e11,
    bandwidth=4.8e12,
    peak_flops=67e12,
    moved_bytes=5.4e8,
)
SVG = "{http://www.w3.org/2000/svg}"
STALLS = (Stall(reason="long_scoreboard", cycles=113.8, share=0.94), Stall(reason="wait", cycles=2.0, share=0.02))


def texts(svg: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_roofline_names_its_roofs_its_floor_and_the_call() -> None:
    found = texts(roofline_svg(PLACE, "scale <x> & y"))
    assert {"4.8 TB/s", "67 TFLOP/s", "floor 56 µs", "this call 122 µs", "by bytes moved", "scale <x> & y"} <= {*found}


def test_stalls_are_bars_with_their_share() -> None:
    svg = stalls_svg(STALLS, "Stalls")
    assert "94% (113.8 cycles)" in texts(svg)
    bars = [e for e in ElementTree.fromstring(svg).iter(f"{SVG}rect") if e.get("class") == "bar"]
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert len(widths) == 2 and widths[0] > 10 * widths[1]


@pytest.mark.parametrize("svg", [roofline_svg(PLACE, "t"), stalls_svg(STALLS, "t"), stalls_svg((), "t")])
def test_there_are_colours_for_dark_paper_and_a_title_for_those_who_cannot_see_it(svg: str) -> None:
    assert "prefers-color-scheme: dark" in svg and "<title>t</title>" in svg
    assert ElementTree.fromstring(svg).attrib["viewBox"] == f"0 0 {WIDTH} {HEIGHT}"


POSITIVE = st.floats(1e-12, 1e18)


@given(numbers=st.tuples(*[POSITIVE] * 7), moved=st.one_of(st.none(), POSITIVE))
def test_any_place_is_drawn_inside_the_paper(numbers: tuple[float, ...], moved: float | None) -> None:
    seconds, floor, intensity, roof, flops, bandwidth, peak = numbers
    place = Roofline(
        seconds=seconds,
        floor_seconds=floor,
        bound="math",
        intensity=intensity,
        attainable_flops=roof,
        achieved_flops=flops,
        bandwidth=bandwidth,
        peak_flops=peak,
        moved_bytes=moved,
    )
    for dot in ElementTree.fromstring(roofline_svg(place, "t")).iter(f"{SVG}circle"):
        assert 0 <= float(dot.attrib["cx"]) <= WIDTH and 0 <= float(dot.attrib["cy"]) <= HEIGHT
