"""Text that no file, database or process can take, found before it gets anywhere."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_HEAD, _TAIL = 3000, 3000


def unusable(value: Any, where: str = "") -> Iterator[str]:
    """One line for each string in plain data that holds a NUL character or half of a surrogate pair."""
    if isinstance(value, str):
        if found := _UNUSABLE.search(value):
            yield f"{where or 'text'}: {_what(found)} Send the text without it."
    elif isinstance(value, Mapping):
        for key, item in cast(Mapping[str, Any], value).items():
            yield from unusable(key, f"a name in {where or 'the arguments'}")
            yield from unusable(item, f"{where}.{key}".lstrip("."))
    elif isinstance(value, list):
        for i, item in enumerate(cast(list[Any], value)):
            yield from unusable(item, f"{where}.{i}".lstrip("."))


def _what(found: re.Match[str]) -> str:
    kind = "a NUL character" if found[0] == "\0" else f"half of a surrogate pair (U+{ord(found[0]):04X})"
    return f"holds {kind} at position {found.start()}."


def fitting(text: str) -> str:
    """An error text short enough to read: what echoes a long argument loses its middle, and stays valid Unicode."""
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= _HEAD + _TAIL:
        return text
    return f"{text[:_HEAD]} … [{len(text) - _HEAD - _TAIL} characters cut] … {text[-_TAIL:]}"
