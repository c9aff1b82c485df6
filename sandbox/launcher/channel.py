"""The asyncio side of `sandbox/child/wire.py`: length-prefixed JSON on a Unix stream socket, descriptors ride along."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Sequence
from typing import Any, cast

from hiera_mcp.sandbox.child.wire import HEADER, MAX_MESSAGE, Closed, Malformed


class Channel:
    """One end of a socketpair. Sending is atomic: a cancelled `send` never leaves half a message on the wire."""

    def __init__(self, sock: socket.socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._sock = sock
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, sock: socket.socket) -> "Channel":
        """Take over `sock`; it is closed with the channel."""
        reader, writer = await asyncio.open_unix_connection(sock=sock)
        return cls(sock, reader, writer)

    async def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one message; descriptors arrive with its first byte, so that nothing may be queued before them.

        Raises:
            Closed: the other side is gone.
        """
        body = json.dumps(message).encode()
        data = HEADER.pack(len(body)) + body
        try:
            if fds:
                await self._writer.drain()
                data = data[socket.send_fds(self._sock, [data], list(fds)) :]
            self._writer.write(data)
            await self._writer.drain()
        except OSError as e:
            raise Closed from e

    async def receive(self, limit: int = MAX_MESSAGE) -> dict[str, Any]:
        """The next message.

        Raises:
            Closed: the other side is gone, perhaps in the middle of a message.
            Malformed: more than `limit` bytes, or not a JSON object.
        """
        try:
            (size,) = HEADER.unpack(await self._reader.readexactly(HEADER.size))
            if size > limit:
                raise Malformed(f"a message of {size} bytes, more than {limit}")
            body = await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError) as e:
            raise Closed from e
        return _parse(body)

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """Close at once; what is queued is dropped."""
        self._writer.transport.abort()


def _parse(body: bytes) -> dict[str, Any]:
    try:
        message: Any = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise Malformed(str(e)) from e
    if not isinstance(message, dict):
        raise Malformed("not a JSON object")
    return cast("dict[str, Any]", message)
