"""Rubrics and signals as Markdown tables, for docs/planning.md."""

from collections.abc import Mapping, Sequence

from hiera_mcp.model.knowledge import SIGNALS
from hiera_mcp.model.plan import OptionScore
from hiera_mcp.model.space import Direction, spaces_of
from hiera_mcp.planning.decide import Proposal, plan_direction, plan_space
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.rubrics import RUBRICS, Rubric, load_rubric

TARGET = "cuda:sm_90a"
"""Of the table of tasks."""


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


def task_table(evidence: Mapping[str, Evidence]) -> str:
    """Rubric scores of tasks at the first step, before any candidate: a row per task, bold what is recommended."""
    rows: list[Sequence[str]] = []
    for name, known in evidence.items():
        plans = plan_space(known), plan_direction(known)
        rows.append((f"`{name}`", *(_cell(o, plan) for plan in plans for o in plan.options)))
    head = ("task", *(space.value for space in spaces_of(TARGET)), *(d.value for d in Direction))
    return table(head, rows)


def _cell(option: OptionScore, plan: Proposal) -> str:
    if option.gates:
        return "forbidden"
    return f"**{option.total:.2f}**" if option.option == plan.recommended else f"{option.total:.2f}"


def generated_sections() -> dict[str, str]:
    """Name of a generated section of docs/planning.md → its text."""
    return {**{kind: rubric_table(load_rubric(kind)) for kind in RUBRICS}, "signals": signal_table()}


def with_sections(text: str, sections: Mapping[str, str] | None = None) -> str:
    """The document with the text between `<!-- NAME -->` and `<!-- /NAME -->` replaced by what is generated."""
    for name, section in (generated_sections() if sections is None else sections).items():
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
