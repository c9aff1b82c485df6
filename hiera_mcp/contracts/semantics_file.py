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
    text = {
        "how_to_read": HOW_TO_READ,
        "rules": {name: rule for rule, name in names.items()},
        "tensors": {p.name: _row(p, names) for p in contract.parameters},
    }
    return json.dumps(text, indent=1, ensure_ascii=False) + "\n"


def _rule_names(parameters: Sequence[Parameter]) -> Mapping[str, str]:
    """Long texts that occur more than once → their names."""
    counted = Counter(t for p in parameters for value in p.model_dump().values() for t in _texts(value))
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
