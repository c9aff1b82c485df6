"""The file in which memory moves between hosts: reading with errors that name the place, writing whole or not at all."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from hiera_mcp.errors import RequestError
from hiera_mcp.model.memory import Memory

FORMAT = "hiera-memory"
VERSIONS: tuple[int, ...] = get_args(Memory.model_fields["version"].annotation)
"""What this version reads."""
SHOWN_FAULTS = 3


def memory_text(memory: Memory) -> str:
    """The file's text; the same memory gives the same text."""
    return memory.model_dump_json(indent=1) + "\n"


def read_memory(path: Path) -> Memory:
    """The memory in a file.

    Raises:
        RequestError: it cannot be read, is no such file, or is of another version; names the fields at fault.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path} cannot be read: {error}.", todo="Name a file that kb export wrote.") from error
    return parse_memory(text, str(path))


def parse_memory(text: str, name: str) -> Memory:
    """The memory in a text; `name` is how errors call it."""
    try:
        data: Any = json.loads(text)
    except ValueError as error:
        raise RequestError(f"{name} is not JSON: {error}.", todo="Name a file that kb export wrote.") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:  # pyright: ignore[reportUnknownMemberType]
        raise RequestError(f"{name} holds no exported memory.", todo="Name a file that kb export wrote.")
    if data.get("version") not in VERSIONS:  # pyright: ignore[reportUnknownMemberType]
        valid = [str(v) for v in VERSIONS]
        todo = "Export it again with the version of hiera-mcp that is here."
        raise RequestError(f"{name} is of another version of the format.", todo=todo, valid=valid)
    try:
        return Memory.model_validate(data)
    except ValidationError as error:
        raise RequestError(
            f"{name} is not as kb export writes it: {_faults(error)}.", todo="Export it again."
        ) from error


def write_memory(memory: Memory, path: Path) -> None:
    """Write the file whole, or leave what was there. Raises RequestError."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(memory_text(memory), encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise RequestError(
            f"{path} cannot be written: {error.strerror or error}.", todo="Name another file, or make room."
        ) from error


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False)
    shown = [f"{_place(f['loc'])}: {f['msg']}" for f in faults[:SHOWN_FAULTS]]
    more = len(faults) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])


def _place(loc: Iterable[int | str]) -> str:
    """`rounds[3].space`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")
