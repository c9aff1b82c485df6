"""Parts of the planner that a run does without, so that ablations can be repeated."""

from collections.abc import Sequence

from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model
from hiera_mcp.model.space import Space

FIXED_SPACE = "fixed-space="
NO_DIRECTIONS, NO_CONTRACT_FILES, NO_MEMORY = "no-directions", "no-contract-files", "no-memory"
VALID = (*(f"{FIXED_SPACE}{space}" for space in Space), NO_DIRECTIONS, NO_CONTRACT_FILES, NO_MEMORY)

BARE_FILES = ("groundtruth.py", "contract.h")
"""Of a contract, what is shown even where contract files are switched off; nothing compiles without the header."""


class Switches(Model):
    """How a run is planned. The defaults are the whole method."""

    fixed_space: Space | None = None
    """The only space, in all rounds; null: it is decided."""
    directions: bool = True
    """Whether a direction is decided before the strategy."""
    contract_files: bool = True
    """Whether the writer of candidates sees more of the contract than the reference and contract.h."""
    memory: bool = True
    """Whether earlier runs have a say."""

    @property
    def words(self) -> tuple[str, ...]:
        """What `switches_of` reads; empty for the whole method."""
        space = (f"{FIXED_SPACE}{self.fixed_space}",) if self.fixed_space else ()
        off = ((NO_DIRECTIONS, self.directions), (NO_CONTRACT_FILES, self.contract_files), (NO_MEMORY, self.memory))
        return (*space, *(word for word, kept in off if not kept))


def switches_of(words: Sequence[str]) -> Switches:
    """The switches that the words name, such as `fixed-space=cuda` and `no-directions`. Raises RequestError."""
    unknown = [word for word in words if word not in VALID]
    if unknown:
        raise RequestError(f"{unknown[0]!r} is nothing that planning can do without.", valid=VALID)
    spaces = {Space(word.removeprefix(FIXED_SPACE)) for word in words if word.startswith(FIXED_SPACE)}
    if len(spaces) > 1:
        raise RequestError(f"{len(spaces)} spaces are fixed: {', '.join(sorted(spaces))}.", todo="Fix one.")
    return Switches(
        fixed_space=next(iter(spaces), None),
        directions=NO_DIRECTIONS not in words,
        contract_files=NO_CONTRACT_FILES not in words,
        memory=NO_MEMORY not in words,
    )
