"""Validation errors as an agent wants to read them: one line per fault, with the values that would be accepted."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

Schema = Mapping[str, Any]


def explain(error: ValidationError, schema: Schema) -> str:
    """One line per fault. `schema` is the JSON schema of what was validated; it names the legal fields and values."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return "\n".join(dict.fromkeys(f"- {_line(fault, schema)}" for fault in details))


def _line(fault: ErrorDetails, schema: Schema) -> str:
    loc = fault["loc"]
    where = ".".join(map(str, loc)) or "(arguments)"
    if fault["type"] == "extra_forbidden":
        return f"{where}: no such argument.{_names(str(loc[-1]), _at(schema, loc[:-1], schema))}"
    if fault["type"] in ("missing", "missing_argument"):
        return f"{where}: is required.{_says(_at(schema, loc, schema))}"
    if fault["type"] == "value_error":  # a validator of ours, which names the valid values itself
        return f"{where}: {fault['msg'].removeprefix('Value error, ')}"
    here = _at(schema, loc, schema)
    return f"{where}: {_wanted(fault, here, schema) or fault['msg']}.{_says(here)}"


def _wanted(fault: ErrorDetails, here: Schema, root: Schema) -> str:
    """What the value should have been, for the kinds that pydantic names by its own classes; else empty."""
    match fault["type"]:
        case "model_type" | "dict_type" | "model_attributes_type":
            return f"should be an object{_fields(here)}"
        case "list_type" | "tuple_type":
            item = _resolve(here.get("items", {}), root)
            kind = item.get("type", "value")
            return f"should be a list, each item {'an' if kind[0] in 'aeio' else 'a'} {kind}{_fields(item)}"
        case _:
            return ""


def _fields(schema: Schema) -> str:
    names = list(schema.get("properties", {}))
    return f" with the fields {', '.join(names)}" if names else ""


def _names(wrong: str, schema: Schema) -> str:
    names = list(schema.get("properties", {}))
    close = get_close_matches(wrong, names, n=1)
    hint = f" Did you mean `{close[0]}`?" if close else ""
    return f"{hint} Valid: {', '.join(names) or 'none'}."


def _says(schema: Schema) -> str:
    """Legal values and meaning of a field, as its schema states them."""
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if values:
        return " Valid: " + ", ".join(map(str, values)) + "."
    if "minimum" in schema and "maximum" in schema:
        return f" Valid: {schema['minimum']} to {schema['maximum']}."
    return f" {schema['description']}" if schema.get("description") else ""


def _at(schema: Schema, loc: Sequence[int | str], root: Schema) -> Schema:
    """The part of a JSON schema that describes the value at `loc`; empty when there is none."""
    here = _resolve(schema, root)
    for part in loc:
        here = _step(here, part, root)
    return here


def _step(schema: Schema, part: int | str, root: Schema) -> Schema:
    if isinstance(part, int):
        return _resolve(schema.get("items", {}), root)
    properties = schema.get("properties", {})
    values: Schema | bool = schema.get("additionalProperties", False)
    return _resolve(properties.get(part) or ({} if isinstance(values, bool) else values), root)


def _resolve(schema: Schema, root: Schema) -> Schema:
    """Follow `$ref` and look through `X | None`; a field's own description wins over its type's."""
    if "$ref" in schema:
        target = root.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2], {})
        return {**_resolve(target, root), **{k: v for k, v in schema.items() if k != "$ref"}}
    options = [o for o in schema.get("anyOf", ()) if o.get("type") != "null"]
    if len(options) == 1:
        return {**_resolve(options[0], root), **{k: v for k, v in schema.items() if k != "anyOf"}}
    return schema
