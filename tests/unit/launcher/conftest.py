"""What the launcher's tests share."""

from dataclasses import dataclass, field

import pytest


@dataclass
class Heard:
    """A Notify that remembers what it was told."""

    messages: list[str] = field(default_factory=list[str])

    async def __call__(self, message: str, fraction: float | None) -> None:
        self.messages.append(message)


@pytest.fixture
def heard() -> Heard:
    return Heard()
