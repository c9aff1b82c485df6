"""What every model type shares: frozen, strict about names, a field's docstring is its schema description."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1)]
"""A string that says something."""

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""A name that is legal in C and in Python."""


class Model(BaseModel):
    """Base of all domain types. Immutable; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def digest(value: Any, length: int = 16) -> str:
    """Content address of plain data: the first `length` hex digits of the SHA-256 of its canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]
