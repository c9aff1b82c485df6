"""NVIDIA's rules as hints: their messages made plain, and why some of them are not to be followed. Pure."""

import re
from collections.abc import Iterable

from hiera_mcp.model.profile import Hint
from hiera_mcp.sandbox.profiling.raw import RawRule

_ALWAYS_WRONG = {
    "MemoryL2Compression": "Compression needs memory that was allocated as compressible; tensors are not.",
    "PMSamplingData": "It speaks of the sampler's interval, not of the kernel.",
}
MOST_CHARACTERS = 400


def hints(found: Iterable[RawRule]) -> tuple[Hint, ...]:
    """The findings that advise something, greatest estimate first."""
    advice = [_hint(rule) for rule in found if rule.kind in ("optimization", "warning")]
    return tuple(sorted(advice, key=lambda hint: -(hint.gain_percent or 0.0)))


def plain(message: str) -> str:
    """A message without the markup of its links, which reads `@url:text:address@` or `@section:name:text@`."""
    return " ".join(_unlinked(message).split())


def _unlinked(message: str) -> str:
    text = re.sub(r"@url:([^@]*?):https?:[^@]*@", r"\1", message)
    text = re.sub(r"@section:[^:@]*:([^@]*)@", r"\1", text)
    return re.sub(r"@(?:sass|source):[^@]*:([^:@]*)@", r"\1", text)


def _hint(rule: RawRule) -> Hint:
    text = plain(rule.message)
    return Hint(
        rule=rule.rule,
        message=text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…",
        gain_percent=None if rule.gain_percent is None else round(rule.gain_percent, 1),
        scope=rule.scope,
        overruled=_ALWAYS_WRONG.get(rule.rule, ""),
    )
