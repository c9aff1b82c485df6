"""What every operation of the launcher shares: isolation, work folders, caches, locks, warm judges and tracers."""

import asyncio
import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hiera_mcp.errors import NoIsolationError
from hiera_mcp.model.evaluation import Device
from hiera_mcp.model.space import Target
from hiera_mcp.sandbox.devices import cpu_name, device_note, gpu_named, host_name, processors
from hiera_mcp.sandbox.isolation import probe
from hiera_mcp.sandbox.isolation.box import Isolation
from hiera_mcp.sandbox.launcher.judges import Judges
from hiera_mcp.sandbox.launcher.locks import DeviceLocks
from hiera_mcp.sandbox.launcher.pruning import prune
from hiera_mcp.sandbox.launcher.tracers import Tracers
from hiera_mcp.sandbox.launcher.work import OPEN_TO_BOXES, WorkRoot


@dataclass(frozen=True)
class Host:
    """One launcher's hold on its host."""

    found: Isolation | NoIsolationError
    """The backend that passed its self-check, or why none did."""
    work: WorkRoot
    cache: Path
    compile_slots: asyncio.Semaphore
    """As many compilers at once as there are processors."""
    locks: DeviceLocks
    judges: Judges
    tracers: Tracers

    @classmethod
    async def open(cls, cache: Path, unsafe: bool) -> "Host":
        """Choose the isolation by trying, make the work root. `unsafe` allows to run without isolation."""
        work = WorkRoot.create()
        tempfile.tempdir = str(work.path)  # what the backends make for themselves goes with it
        with contextlib.suppress(OSError):  # a build says so, when it cannot be kept; all else works without it
            cache.mkdir(mode=OPEN_TO_BOXES, parents=True, exist_ok=True)
        await asyncio.to_thread(prune, cache)
        slots = asyncio.Semaphore(processors())
        return cls(await _choose(unsafe), work, cache, slots, DeviceLocks(), Judges(work), Tracers(work))

    @property
    def isolation(self) -> Isolation:
        """The backend in use.

        Raises:
            NoIsolationError: none passes its self-check here.
        """
        if isinstance(self.found, NoIsolationError):
            raise self.found
        return self.found

    async def close(self) -> None:
        await asyncio.gather(self.judges.close(), self.tracers.close())
        self.work.remove()


async def _choose(unsafe: bool) -> Isolation | NoIsolationError:
    try:
        return await probe.choose(unsafe)
    except NoIsolationError as e:
        return e


def device_of(host: Host, target: Target, device: str | None) -> Device:
    """Device for a result; None: built here, and nothing ran."""
    gpu = gpu_named(device) if device else None
    name = gpu.name if gpu else cpu_name() if device else f"no device; built on {cpu_name()}"
    note = device_note(target, gpu) if gpu else ""
    return Device(
        name=f"{name} ({note})" if note else name,
        target=target,
        driver=gpu.driver if gpu else None,
        isolation=host.isolation.name,
        host=host_name(),
    )
