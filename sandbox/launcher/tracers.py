"""Tracers: kept warm for further references, because to import torch takes longer than most traces."""

import asyncio
from typing import Any

from hiera_mcp.model.work import TraceRequest
from hiera_mcp.sandbox.child.leftovers import RESULT_BYTES
from hiera_mcp.sandbox.child.wire import Closed
from hiera_mcp.sandbox.isolation.box import Isolation, Outcome
from hiera_mcp.sandbox.launcher import boxes
from hiera_mcp.sandbox.launcher.warm import Shelf, WarmBox, open_box
from hiera_mcp.sandbox.launcher.work import WorkRoot

IDLE_S = 60.0
TRACER = "tracer"


class Tracer:
    """One running tracer."""

    def __init__(self, box: WarmBox) -> None:
        self.box = box
        self.used = False

    async def end(self) -> Outcome:
        return await self.box.end()


class Tracers:
    """As many as there are traces at once."""

    def __init__(self, work: WorkRoot, idle_s: float = IDLE_S) -> None:
        self._work = work
        self._shelf = Shelf[Tracer](idle_s)

    async def answer(self, isolation: Isolation, request: TraceRequest) -> dict[str, Any] | Outcome:
        """What a tracer says of a reference, or how it ended.

        One that dies on its second reference may do so because of the first: then a fresh one is asked.
        """
        while True:
            tracer = self._shelf.take(TRACER) or Tracer(await open_box(isolation, self._work, "tracer", boxes.tracer))
            used, tracer.used = tracer.used, True
            try:
                answer = await _ask(tracer.box, request)
            except BaseException:
                await tracer.end()
                raise
            if isinstance(answer, dict):
                self._shelf.put(TRACER, tracer)
                return answer
            await tracer.end()
            if not used or answer.ended == "timeout":
                return answer

    async def close(self) -> None:
        await self._shelf.close()


async def _ask(tracer: WarmBox, request: TraceRequest) -> dict[str, Any] | Outcome:
    tracer.box.forget_output()
    try:
        async with asyncio.timeout(request.timeout_s):
            await tracer.channel.send({"request": request.model_dump(mode="json")})
            return await tracer.channel.receive(RESULT_BYTES)
    except TimeoutError:
        return await tracer.box.wait(0)
    except Closed:
        return await tracer.box.wait()
