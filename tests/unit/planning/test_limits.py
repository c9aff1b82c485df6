"""What fits into a block and onto a multiprocessor."""

from collections.abc import Callable
from typing import Any

import pytest

from hiera_mcp.knowledge_base.entries import packaged_entries
from hiera_mcp.knowledge_base.hardware import gpu_for
from hiera_mcp.model.space import Space, spaces_of
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.legality import validate_strategy
from hiera_mcp.planning.limits import limits_text, numbers, too_large
from hiera_mcp.planning.strategy import template

HOPPER, AMPERE = "cuda:sm_90a", "cuda:sm_80"


def on(target: str, evidence: Callable[..., Evidence], **more: Any) -> Evidence:
    return evidence(target=target, gpu=None if target == "cpu" else gpu_for(target), **more)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (256, (256,)),
        ([128, 256], (128, 256)),
        ("128 or 256", (128, 256)),
        ("up to 64 KB", (65536,)),
        ("232,448", (232448,)),
        (True, ()),
        (None, ()),
        ({"a": 1}, ()),
    ],
)
def test_all_numbers_of_a_parameter_are_read(value: Any, found: tuple[float, ...]) -> None:
    assert numbers(value) == found


@pytest.mark.parametrize(
    ("target", "parameters", "says"),
    [
        (AMPERE, {"threads_per_block": 2048}, "threads_per_block = 2048"),
        (AMPERE, {"threads_per_block": "128 to 2048"}, "threads_per_block = 2048"),
        (AMPERE, {"registers_per_thread": 300}, "registers_per_thread = 300"),
        (AMPERE, {"shared_bytes": "200 KB"}, "shared_bytes = 204800"),
        (AMPERE, {"threads_per_block": 1024, "registers_per_thread": 128}, "131072 registers"),
        (AMPERE, {"threads_per_block": 512, "blocks_per_sm": 8}, "4096 threads"),
        (HOPPER, {"shared_bytes": 120_000, "blocks_per_sm": 2}, "240000 bytes of shared memory"),
        (HOPPER, {"shared_bytes": "200 KB"}, None),
        (HOPPER, {"shared_bytes": 110_000, "blocks_per_sm": 2}, None),
        (HOPPER, {"threads_per_block": [128, 1024], "registers_per_thread": [64, 255]}, None),  # the least ones fit
        (HOPPER, {"tile_m": 4096, "stages": 9}, None),
        ("cpu", {"threads_per_block": 4096}, None),
    ],
)
def test_numbers_that_do_not_fit_the_target_are_named(
    target: str, parameters: dict[str, Any], says: str | None, evidence: Callable[..., Evidence]
) -> None:
    found = too_large(parameters, on(target, evidence))
    assert found is None if says is None else found is not None and says in found


def test_the_limits_are_those_of_the_target(evidence: Callable[..., Evidence]) -> None:
    assert "166912 bytes of shared memory a block" in limits_text(on(AMPERE, evidence))
    assert "232448 bytes" in limits_text(on(HOPPER, evidence))
    assert limits_text(on("cpu", evidence)) == ""


@pytest.mark.parametrize("target", ["cpu", AMPERE, HOPPER])
def test_every_shipped_entry_is_a_legal_strategy_where_it_may_be_proposed(
    target: str, evidence: Callable[..., Evidence]
) -> None:
    tried = 0
    for entry in packaged_entries():
        arch = target.partition(":")[2] or "cpu"
        space = next((s for s in spaces_of(target) if entry.allows_space(Space(s))), None)
        if space is None or not entry.allows_arch(arch) or entry.direction is None:
            continue
        e = on(target, evidence, space=space, direction=entry.direction)
        strategy = template(entry, e)
        validate_strategy(strategy, e)
        assert strategy.constraints[: len(entry.constraints)] == entry.constraints
        tried += 1
    assert tried >= 15
