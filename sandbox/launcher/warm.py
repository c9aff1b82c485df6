"""Boxed programs that do several jobs: started once, spoken to over a channel, and kept warm for a while between jobs."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from hiera_mcp.errors import LostError
from hiera_mcp.sandbox.child.wire import Closed, Malformed
from hiera_mcp.sandbox.isolation import process
from hiera_mcp.sandbox.isolation.box import BoxSpec, Isolation, Outcome
from hiera_mcp.sandbox.isolation.process import BoxProcess
from hiera_mcp.sandbox.launcher.channel import Channel
from hiera_mcp.sandbox.launcher.verdict import signal_name, tail
from hiera_mcp.sandbox.launcher.work import WorkRoot

READY_S = 120.0
"""Longest start of a program: importing torch from a cold disk, and a CUDA context."""
MESSAGE_BYTES = 64 << 20

SpecOf = Callable[[Path, int], BoxSpec]
"""From a fresh work folder and the program's descriptor to its box."""


@dataclass(frozen=True)
class WarmBox:
    """One running program that has said `ready`."""

    box: BoxProcess
    channel: Channel
    ready: dict[str, Any]
    work: Path
    root: WorkRoot

    async def end(self) -> Outcome:
        """End it and everything it started; how it ended, for the message."""
        self.channel.abort()
        try:
            await self.box.kill()
            return await self.box.wait()
        finally:
            self.root.discard(self.work)


async def open_box(isolation: Isolation, root: WorkRoot, kind: str, spec_of: SpecOf) -> WarmBox:
    """Start a program and wait until it is ready.

    Raises:
        LostError: it did not start.
    """
    work = root.make(kind)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    channel = await Channel.open(ours)
    try:
        with theirs:
            box = await process.start(isolation, spec_of(work, theirs.fileno()))
    except BaseException:
        channel.abort()
        root.discard(work)
        raise
    warm = WarmBox(box, channel, {}, work, root)
    try:
        warm.ready.update(await asyncio.wait_for(_ready(channel), READY_S))
    except BaseException as e:
        outcome = await warm.end()
        if isinstance(e, Closed | Malformed | TimeoutError):
            raise _not_started(kind, outcome) from e
        raise
    return warm


async def _ready(channel: Channel) -> dict[str, Any]:
    message = await channel.receive(MESSAGE_BYTES)
    if message.get("event") != "ready":
        raise Malformed(f"expected `ready`, got {str(message)[:200]}")
    return message


def _not_started(kind: str, outcome: Outcome) -> LostError:
    return LostError(
        f"The {kind} did not start: {ending(outcome)}.",
        todo="Run `hiera-mcp doctor`; it says what is missing on this host.",
    )


def ending(outcome: Outcome) -> str:
    """How a process of ours ended, with its last words."""
    how = {
        "exit": f"it exited with status {outcome.code}",
        "signal": f"it was ended by {signal_name(outcome.code)}",
        "killed": f"it gave no answer for {outcome.seconds:.0f} s",
    }.get(outcome.ended, outcome.ended.replace("_", " "))
    words = tail(outcome.output)
    return f"{how}; its last output: {words}" if words else how


class Endable(Protocol):
    async def end(self) -> Outcome: ...


Item = TypeVar("Item", bound=Endable)


class Shelf(Generic[Item]):
    """Healthy programs that nobody uses at the moment; each is ended when nobody takes it for a while."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._kept: list[tuple[str, Item, asyncio.TimerHandle]] = []
        self._ending: set[asyncio.Task[Outcome]] = set()

    def take(self, key: str) -> Item | None:
        """The one that was put here last under `key`; it belongs to the caller now."""
        for place in reversed(range(len(self._kept))):
            if self._kept[place][0] == key:
                _, item, timer = self._kept.pop(place)
                timer.cancel()
                return item
        return None

    def put(self, key: str, item: Item) -> None:
        timer = asyncio.get_running_loop().call_later(self._idle_s, self._expire, item)
        self._kept.append((key, item, timer))

    async def close(self) -> None:
        """End all."""
        items = [item for _, item, _ in self._kept]
        for _, _, timer in self._kept:
            timer.cancel()
        self._kept.clear()
        await asyncio.gather(*(item.end() for item in items), *self._ending)

    def _expire(self, item: Item) -> None:
        self._kept = [entry for entry in self._kept if entry[1] is not item]
        task = asyncio.create_task(item.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
