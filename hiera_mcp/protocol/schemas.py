"""JSON schemas as clients get them."""

from typing import Any, cast

_NAMED = ("properties", "$defs")
"""Keys whose value maps names to schemas; a name there may be `title`."""


def without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without pydantic's titles, which repeat each field's name and cost every client tokens."""
    return {k: _plain(k, v) for k, v in schema.items() if k != "title"}


def _plain(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        inner = cast(dict[str, Any], value)
        return {n: without_titles(s) for n, s in inner.items()} if key in _NAMED else without_titles(inner)
    if isinstance(value, list):
        return [_plain("", item) for item in cast(list[Any], value)]
    return value
