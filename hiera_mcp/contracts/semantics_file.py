"""params_semantics.json: what each parameter means, readable for a model of 600 tensors too."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from hiera_mcp.model.contract import Contract, Parameter

SHORTEST_RULE = 40
"""Characters from which on a text that repeats is told once."""

HOW_TO_READ = {
    "order": "`tensors` has the fields of hiera_params in the order of the struct; absent fields are empty",
    "rules": 'a text "@3" stands for the one of that name under `rules`',
    "layout": "every tensor is dense, in C order of its shape; `strides` (in elements) say what to multiply each index with",
    "hiera_prepare": "may compute any function of parameters and buffers alone, and nothing of inputs or random draws, which it "
    "does not see; it runs again whenever parameters change, so keep its results in the workspace and never in the binary",
    "may_precompute": "what is worth it, besides; must_not_precompute: what looks so and is wrong, with the reason",
    "read_by": "ATen operators of the reference and the argument that the tensor fills; (transposed), (as …): how they see it",
}


def render_semantics(contract: Contract) -> str:
    """Role, layout, strides, readers, constraints and what may be prepared of each parameter, as JSON."""
    names = _rule_names(contract.parameters)
    tensors = {p.name: _lines(_row(p, names), "   ") for p in contract.parameters}
    parts = {
        "how_to_read": _lines(HOW_TO_READ, "  "),
        "rules": _lines({name: rule for rule, name in names.items()}, "  "),
        "tensors": "{" + ",".join(f"\n  {_json(name)}: {row}" for name, row in tensors.items()) + "\n }",
    }
    return "{" + ",".join(f"\n {_json(name)}: {text}" for name, text in parts.items()) + "\n}\n"


def _lines(fields: Mapping[str, Any], indent: str) -> str:
    """An object with one field per line, lists in one line each."""
    return "{" + ",".join(f"\n{indent}{_json(k)}: {_json(v)}" for k, v in fields.items()) + f"\n{indent[:-1]}}}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _rule_names(parameters: Sequence[Parameter]) -> Mapping[str, str]:
    """Long texts that occur more than once → their names."""
    dumped = [p.model_dump(exclude={"consumed_by", "path", "name"}) for p in parameters]
    counted = Counter(t for row in dumped for value in row.values() for t in _texts(value))
    repeated = [t for t, n in counted.items() if n > 1 and len(t) >= SHORTEST_RULE]
    return {t: f"@{n}" for n, t in enumerate(repeated, 1)}


def _texts(value: Any) -> Sequence[str]:
    """The texts of a field."""
    if isinstance(value, str):
        return (value,)
    return [v for v in cast("tuple[Any, ...]", value) if isinstance(v, str)] if isinstance(value, tuple) else ()


def _row(p: Parameter, names: Mapping[str, str]) -> dict[str, Any]:
    given = p.model_dump(mode="json", exclude={"name"})
    return {k: _short(v, names) for k, v in given.items() if v not in ("", []) or k == "shape"}


def _short(value: Any, names: Mapping[str, str]) -> Any:
    """A field with rules by name."""
    if isinstance(value, list):
        return [_short(v, names) for v in cast("list[Any]", value)]
    return names.get(value, value) if isinstance(value, str) else value
