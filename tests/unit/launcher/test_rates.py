"""The rates of this host: measured once by a real box, then kept."""

from pathlib import Path

import pytest

from hiera_mcp.model.work import HostRates
from hiera_mcp.sandbox.launcher.rates import read_rates
from hiera_mcp.sandbox.local import LocalExecutor


async def test_rates_are_measured_once_and_kept_in_the_cache(tmp_path: Path) -> None:
    said: list[str] = []

    async def listen(message: str, fraction: float | None) -> None:
        said.append(message)

    executor = LocalExecutor(cache_dir=tmp_path)
    try:
        first = await executor.host_rates(listen)
        second = await executor.host_rates(listen)
    finally:
        await executor.close()
    assert first == second
    assert said.count("measuring this host's processor, once") == 1
    assert [size for size, _ in first.bandwidth] == [1 << n for n in range(20, 28)]
    assert min(rate for _, rate in first.bandwidth) > 1e8
    assert first.flops["fp32"] > first.flops["fp64"] / 2 > 1e7
    (kept,) = tmp_path.glob("host-rates-*.json")
    assert read_rates(kept) == first


@pytest.mark.parametrize("text", ["", "{", "{}", '{"bandwidth": [], "flops": {}}'])
def test_kept_rates_that_cannot_be_read_are_measured_anew(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rates.json"
    path.write_text(text)
    assert read_rates(path) is None


def test_a_working_set_below_the_smallest_measured_one_gets_its_rate() -> None:
    rates = HostRates(bandwidth=((1 << 20, 3e10), (1 << 22, 1e10)), flops={"fp32": 1.0})
    assert rates.bandwidth_for(12.0) == 3e10
