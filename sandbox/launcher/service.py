"""The launcher's message loop: one task per request, progress and results back, everything ended when the server goes.

Server → launcher: `{"id", "op": "trace" | "check" | "evaluate" | "profile" | "sanitize" | "doctor", "request"}` and
`{"id", "op": "cancel"}`. Launcher → server, per id: any number of `{"event": "progress", "message", "fraction"}`, then
exactly one of `{"event": "done", "type", "result"}`, `{"event": "error", "error"}`, `{"event": "cancelled"}`.
"""

import asyncio
import contextlib
import traceback
from typing import Any

from hiera_mcp.errors import HieraError, LostError, RequestError
from hiera_mcp.model.base import Model
from hiera_mcp.sandbox.child.wire import Closed, Malformed
from hiera_mcp.sandbox.executor import Notify
from hiera_mcp.sandbox.launcher.channel import Channel
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.operations import OPERATIONS

END_S = 0.25
"""How long the tasks have to end their boxes once the server is gone."""


class Service:
    """Serves one server over one channel until it closes it."""

    def __init__(self, channel: Channel, host: Host) -> None:
        self._channel = channel
        self._host = host
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Return when the server is gone and nothing of its work is left."""
        try:
            while True:
                await self._take(await self._channel.receive())
        except (Closed, Malformed):
            pass
        finally:
            await self._end_all()

    async def _take(self, message: dict[str, Any]) -> None:
        number = int(message["id"])
        if message["op"] != "cancel":
            task = asyncio.create_task(self._answer(number, message))
            self._tasks[number] = task
            task.add_done_callback(lambda _: self._tasks.pop(number, None))
            await asyncio.sleep(0)  # a task that is cancelled before its first step would never answer
        elif number in self._tasks:
            self._tasks[number].cancel()

    async def _answer(self, number: int, message: dict[str, Any]) -> None:
        try:
            answer = await self._perform(number, message)
        except asyncio.CancelledError:
            answer: dict[str, Any] = {"event": "cancelled"}
        with contextlib.suppress(Closed):  # `serve` sees the same end of the channel and ends everything
            await self._channel.send({"id": number, **answer})

    async def _perform(self, number: int, message: dict[str, Any]) -> dict[str, Any]:
        try:
            result = await _call(self._host, message, self._notifier(number))
        except HieraError as e:
            return {"event": "error", "error": e.as_dict()}
        except Exception:  # noqa: BLE001 - a defect of ours must reach the server as such, whatever it is
            return {"event": "error", "error": _defect(message["op"]).as_dict()}
        return {"event": "done", "type": type(result).__name__, "result": result.model_dump(mode="json")}

    def _notifier(self, number: int) -> Notify:
        async def notify(text: str, fraction: float | None) -> None:
            await self._channel.send({"id": number, "event": "progress", "message": text, "fraction": fraction})

        return notify

    async def _end_all(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        closing = asyncio.create_task(self._host.close())
        await asyncio.wait([*tasks, closing], timeout=END_S)


async def _call(host: Host, message: dict[str, Any], notify: Notify) -> Model:
    operation = OPERATIONS.get(message["op"])
    if operation is None:
        raise RequestError(f"The launcher knows no operation `{message['op']}`.", valid=tuple(OPERATIONS))
    return await operation(host, message["request"], notify)


def _defect(op: str) -> LostError:
    return LostError(
        f"The launcher failed inside `{op}`, which is a defect of hiera_mcp and not of the candidate:\n"
        + traceback.format_exc(limit=-6),
        todo="Submit the work again; if it fails again, report this text.",
    )
