"""Sources that an agent submits: which files, how large, under which name."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model
from hiera_mcp.model.space import MODEL_FILE, Space, Target, source_file

MAX_SOURCE = 512 * 1024
"""Characters of one source file."""

CandidateName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"),
    Field(description="Your name for it: letters, digits, `_.-`."),
]
Sources = Annotated[
    dict[str, Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE)]],
    Field(
        min_length=1,
        description="File name -> text. The contract's source_file; in the PyTorch space also model_new.py.",
    ),
]


class Submission(Model):
    """One candidate as it is submitted."""

    name: CandidateName
    sources: Sources
    parent_id: str | None = None
    """The candidate it was derived from."""
    idea: Annotated[str, StringConstraints(max_length=1000)] = ""
    """What you tried, in a line."""


def check_files(name: str, sources: Mapping[str, str], target: Target, space: Space) -> None:
    """Refuse files that no candidate of this target has.

    Raises:
        RequestError: a file name is unknown, a file is empty, or there is nothing to run.
    """
    valid = (source_file(target), MODEL_FILE)
    unknown = [file for file in sources if file not in valid]
    if unknown:
        raise RequestError(f"Candidate `{name}` has unknown files: {', '.join(unknown)}.", valid=valid)
    empty = [file for file, text in sources.items() if not text.strip()]
    if empty:
        raise RequestError(f"Candidate `{name}` has nothing in {', '.join(empty)}.", todo="Send the whole text of it.")
    if source_file(target) not in sources and not space.allows_pytorch:
        raise RequestError(
            f"Candidate `{name}` has no {source_file(target)}.",
            todo=f"In space {space.value} that file holds the whole candidate.",
        )
