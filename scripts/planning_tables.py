"""Write the generated tables into docs/planning.md: `python scripts/planning_tables.py`."""

from pathlib import Path

from hiera_mcp.planning.tables import with_sections

PAGE = Path(__file__).parents[1] / "docs" / "planning.md"

if __name__ == "__main__":
    PAGE.write_text(with_sections(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{PAGE.name} is up to date")
