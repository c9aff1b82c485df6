"""This host's rates are measured once for all tests, not in each cache folder that a test has for itself."""

import os
import shutil
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from hiera_mcp.sandbox.launcher.rates import file_name
from hiera_mcp.sandbox.local import LocalExecutor
from hiera_mcp.settings import from_environment


def with_host_rates(cache: Path) -> Path:
    """`cache`, which knows what this host's processor reached."""
    kept = from_environment(os.environ).cache_dir / file_name()
    if not kept.is_file():
        with start_blocking_portal("asyncio") as portal:
            portal.call(_measure, kept.parent)
    cache.mkdir(mode=0o755, parents=True, exist_ok=True)
    if kept.is_file():  # not where the user's cache cannot be written
        shutil.copy(kept, cache)
    return cache


async def _measure(cache: Path) -> None:
    async def quiet(message: str, fraction: float | None) -> None:
        pass

    executor = LocalExecutor(cache_dir=cache)
    try:
        await executor.host_rates(quiet)
    finally:
        await executor.close()
