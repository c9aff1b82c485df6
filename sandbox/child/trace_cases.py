"""Several cases of one reference: the same interface on other shapes."""

from typing import Any

from hiera_mcp.sandbox.child import trace_values
from hiera_mcp.sandbox.child.trace_load import Refused


def interface(seen: Any) -> dict[str, Any]:
    """A TracedCase row of an Observation. Random draws of forward() are further inputs."""
    inputs, scalars = trace_values.split_arguments(seen.names, seen.args)
    taken = {*seen.names, *(n for n, _ in seen.outputs)}
    draws = [(trace_values.unique(n, taken), t) for n, t in seen.record.draws]
    inputs += [trace_values.spec(n, t, f"Random draw `{n}` of forward()") for n, t in draws]
    return {
        "name": seen.case,
        "inputs": inputs,
        "scalars": scalars,
        "forward_order": seen.names,
        "draws": [n for n, _ in draws],
        "outputs": [trace_values.spec(n, t, f"Output `{n}` of forward()") for n, t in seen.outputs],
    }


def check_alike(first: Any, other: Any) -> None:
    """Only shapes, and the values of scalars, may differ between cases.

    Raises:
        Refused: they differ in more.
    """
    one, two = (_outline(interface(seen)) for seen in (first, other))
    if one != two:
        raise Refused(
            f"Cases `{first.case}` and `{other.case}` of get_cases() differ in more than shapes: {one} and {two}.",
            "Give each case the same arguments and outputs, of the same types.",
        )


def _outline(row: dict[str, Any]) -> str:
    tensors = [f"{t['name']}: {t['dtype']}" for t in row["inputs"]]
    made = [f"{t['name']}: {t['dtype']}" for t in row["outputs"]]
    scalars = [f"{s['name']}: {type(s['value']).__name__}" for s in row["scalars"]]
    return f"{', '.join(tensors + scalars) or 'nothing'} → {', '.join(made)}"
