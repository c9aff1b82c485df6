"""Rubrics and signals as Markdown tables, for docs/planning.md."""

from collections.abc import Sequence

from hiera_mcp.model.knowledge import SIGNALS
from hiera_mcp.planning.rubrics import RUBRICS, Rubric, load_rubric


def rubric_table(rubric: Rubric) -> str:
    """One row per criterion, then the anchors of each."""
    rows = [(f"`{c.id}`", f"{c.weight:g}", c.question, ", ".join(f"`{r}`" for r in c.reads)) for c in rubric.criteria]
    anchors = [(f"`{c.id}`", *(c.anchors[score] for score in range(4, -1, -1))) for c in rubric.criteria]
    gates = [(f"`{g.id}`", "forbids" if g.effect == "forbids" else "needs a reason", g.forbids) for g in rubric.gates]
    return "\n\n".join(
        [
            f"Version {rubric.version}. {rubric.about}",
            table(("criterion", "weight", "question", "reads"), rows),
            table(("criterion", "4", "3", "2", "1", "0"), anchors),
            table(("gate", "effect", "rule"), gates),
        ]
    )


def signal_table() -> str:
    return table(("signal", "meaning"), [(f"`{name}`", meaning) for name, meaning in SIGNALS.items()])


def generated_sections() -> dict[str, str]:
    """Name of a generated section of docs/planning.md → its text."""
    return {**{kind: rubric_table(load_rubric(kind)) for kind in RUBRICS}, "signals": signal_table()}


def with_sections(text: str) -> str:
    """The document with the text between `<!-- NAME -->` and `<!-- /NAME -->` replaced by what is generated."""
    for name, section in generated_sections().items():
        before, found, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if not found or not end:
            raise ValueError(f"the document has no section {name}")
        text = f"{before}{found}\n{section}\n\n{end}{after}"
    return text


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
