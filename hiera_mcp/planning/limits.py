"""What one block and one multiprocessor of the target can hold: the ranges of a strategy's numbers."""

import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from hiera_mcp.model.hardware import Gpu
from hiera_mcp.model.space import is_cpu
from hiera_mcp.planning.evidence import Evidence

THREADS, REGISTERS, SHARED, BLOCKS = "threads_per_block", "registers_per_thread", "shared_bytes", "blocks_per_sm"
MOST_THREADS, MOST_REGISTERS = 1024, 255
"""Of a block and of a thread, on every architecture (CUDA C++ Programming Guide, technical specifications)."""
_NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*([kK]i?B?\b)?")


def limits_text(evidence: Evidence) -> str:
    """The ranges in a sentence; empty on cpu."""
    if is_cpu(evidence.target):
        return ""
    text = f"At most {MOST_THREADS} threads a block and {MOST_REGISTERS} registers a thread"
    gpu = evidence.gpu
    if gpu is None:
        return f"{text}."
    return (
        f"{text}; {gpu.shared_bytes_per_block} bytes of shared memory a block. An SM holds {gpu.registers_per_sm} registers, "
        f"{gpu.threads_per_sm} threads, {gpu.shared_bytes_per_sm} bytes of shared memory and {gpu.blocks_per_sm} blocks."
    )


def too_large(parameters: Mapping[str, JsonValue], evidence: Evidence) -> str | None:
    """Which parameter is above its limit, alone or together with others; None when all are legal or unknown.

    A parameter may be a number, a list, or words with numbers (`128 or 256`, `up to 64 KB`); each of its numbers counts.
    """
    if is_cpu(evidence.target):
        return None
    problems = (*_alone(parameters, evidence), *(_together(parameters, evidence.gpu) if evidence.gpu else ()))
    return next(iter(problems), None)


def _alone(parameters: Mapping[str, JsonValue], evidence: Evidence) -> Iterator[str]:
    shared = evidence.gpu.shared_bytes_per_block if evidence.gpu else None
    blocks = evidence.gpu.blocks_per_sm if evidence.gpu else None
    for name, most in ((THREADS, MOST_THREADS), (REGISTERS, MOST_REGISTERS), (SHARED, shared), (BLOCKS, blocks)):
        for value in numbers(parameters.get(name)):
            if most is not None and value > most:
                yield f"strategy_target: {name} = {value:g} is above the limit of {evidence.target}, {most}."


def _together(parameters: Mapping[str, JsonValue], gpu: Gpu) -> Iterator[str]:
    """The least of each number, since the larger ones of a range need not meet."""
    least = {name: min(numbers(parameters.get(name)), default=0.0) for name in (THREADS, REGISTERS, SHARED, BLOCKS)}
    blocks = least[BLOCKS] or 1.0
    asked = (
        (blocks * least[THREADS] * least[REGISTERS], gpu.registers_per_sm, "registers"),
        (blocks * least[THREADS], gpu.threads_per_sm, "threads"),
        (blocks * least[SHARED], gpu.shared_bytes_per_sm, "bytes of shared memory"),
    )
    for wanted, most, what in asked:
        if wanted > most:
            yield f"strategy_target: {blocks:g} blocks need {wanted:g} {what}; an SM of {gpu.name} holds {most}."


def numbers(value: JsonValue) -> tuple[float, ...]:
    """All numbers of a parameter; `64 KB` is 65536."""
    return tuple(_numbers(value))


def _numbers(value: JsonValue) -> Iterable[float]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield float(value)
    elif isinstance(value, str):
        for number, unit in _NUMBER.findall(value):
            yield float(number.replace(",", "")) * (1024 if unit else 1)
    elif isinstance(value, list):
        for item in value:
            yield from _numbers(item)
