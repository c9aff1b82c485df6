"""docs/planning.md holds what the code holds."""

from pathlib import Path

import pytest

from hiera_mcp.planning.tables import table, with_sections

PAGE = (Path(__file__).parents[3] / "docs" / "planning.md").read_text(encoding="utf-8")


def test_the_tables_are_up_to_date() -> None:
    assert with_sections(PAGE) == PAGE, "run: python scripts/planning_tables.py"


def test_generating_twice_changes_nothing() -> None:
    assert with_sections(with_sections(PAGE)) == with_sections(PAGE)


def test_a_page_without_a_section_is_refused() -> None:
    with pytest.raises(ValueError, match="no section space"):
        with_sections(PAGE.replace("<!-- space -->", ""))


def test_a_bar_inside_a_cell_is_escaped() -> None:
    assert table(("a",), [("x|y",)]).splitlines()[-1] == "| x\\|y |"
