"""A knowledge entry as Markdown."""

from collections.abc import Iterable

from hiera_mcp.model.knowledge import Entry


def entry_text(entry: Entry) -> str:
    """All of an entry, for reading."""
    place = f"Spaces: {', '.join(entry.spaces)} and larger. Architectures: {', '.join(entry.archs)}."
    head = [
        f"# {entry.title}",
        f"Direction: {entry.direction or 'any (library)'}. {place}",
        f"Operators: {', '.join(entry.operators)}. Cost: {entry.cost}.",
        f"Must move: {entry.must_move}. Expected: {entry.expected}",
    ]
    if entry.overrides:
        head.append("This server's own entry, in the place of the shipped one.")
    sections = [
        _section("When", map(str, entry.signature)),
        _section("Steps", entry.steps),
        _section("Constraints", entry.constraints),
        _section("Pitfalls", entry.pitfalls),
        _section("Parameters", (f"{name}: {text}" for name, text in entry.parameters.items())),
        entry.body.strip(),
        _section("Sources", (f"{source.title}: {source.url}" for source in entry.sources)),
    ]
    return "\n\n".join([*head, *(section for section in sections if section)]) + "\n"


def _section(title: str, rows: Iterable[str]) -> str:
    lines = [f"- {row}" for row in rows]
    return "\n".join([f"## {title}", *lines]) if lines else ""
