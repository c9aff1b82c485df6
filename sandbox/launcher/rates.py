"""What this host's processor can do: measured once, kept in the cache folder, and improved by nothing but a better figure."""

import contextlib
import hashlib
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hiera_mcp.errors import SandboxError
from hiera_mcp.model.work import HostRates
from hiera_mcp.sandbox.child.leftovers import read_result
from hiera_mcp.sandbox.devices import cpu_name, processors
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.isolation import process
from hiera_mcp.sandbox.launcher import boxes
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.verdict import tail

TIMEOUT_S = 120.0


async def host_rates(host: Host, notify: Notify) -> HostRates:
    """The rates of this host: measured under the device lock when nobody has yet.

    Raises:
        SandboxError: the measurement failed.
    """
    path = host.cache / file_name()
    kept = read_rates(path)
    if kept is not None:
        return kept
    async with host.locks.measuring("cpu", notify):
        kept = read_rates(path)  # somebody may have measured while this one waited
        if kept is None:
            kept = await _measured(host, notify)
            _keep(path, kept)
    return kept


async def _measured(host: Host, notify: Notify) -> HostRates:
    await notify("measuring this host's processor, once", None)
    with host.work.folder("rates") as folder:
        outcome = await process.run(host.isolation, boxes.host_rates(folder), TIMEOUT_S)
        result = read_result(folder / "result.json")
    try:
        message: Any = json.loads(result or b"null")
        return HostRates.model_validate(message["rates"])
    except (ValueError, KeyError, TypeError, ValidationError) as e:
        said = tail(outcome.output) or "(nothing)"
        raise SandboxError(f"This host's processor could not be measured ({outcome.ended}): {said}") from e


def read_rates(path: Path) -> HostRates | None:
    """Rates that were kept; None where there are none that can be read."""
    try:
        return HostRates.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _keep(path: Path, rates: HostRates) -> None:
    """Written whole or not at all; without a cache folder each launcher measures for itself."""
    new = path.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):
        new.write_text(rates.model_dump_json())
        new.replace(path)


def file_name() -> str:
    """Where they are kept in a cache folder. Another processor, another number of them, or another torch: another measurement."""
    facts = f"{cpu_name()} {processors()} {version('torch')}"
    return f"host-rates-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.json"
