"""Messages between processes: a 4-byte length, then JSON, on a Unix stream socket; file descriptors ride along.

Nothing is ever unpickled. The receiver states how much it is willing to read.
"""

import json
import os
import socket
import struct
from typing import Any

HEADER = struct.Struct("!I")
MAX_MESSAGE = 64 << 20
MAX_FDS = 64


class Closed(Exception):
    """The other side is gone."""


class Malformed(Exception):
    """The other side sent something that is not a message of ours."""


def send(sock: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Send one message; the descriptors arrive with its first byte.

    Raises:
        Closed: the other side is gone.
    """
    send_body(sock, encode(message), fds)


def encode(message: dict[str, Any]) -> bytes:
    """A message's body."""
    return json.dumps(message).encode()


def send_body(sock: socket.socket, body: bytes, fds: tuple[int, ...] = ()) -> None:
    """Send one message that is JSON already. Raises as `send` does."""
    data = HEADER.pack(len(body)) + body
    try:
        sent = socket.send_fds(sock, [data], list(fds)) if fds else sock.send(data)
        if sent < len(data):
            sock.sendall(data[sent:])
    except (BrokenPipeError, ConnectionResetError) as e:
        raise Closed from e


def receive(sock: socket.socket, limit: int = MAX_MESSAGE) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Receive one message and its descriptors. A timeout set on the socket raises TimeoutError.

    Raises:
        Closed: the other side is gone.
        Malformed: more than `limit` bytes, or not a JSON object.
    """
    head, fds = _first(sock)
    try:
        (size,) = HEADER.unpack(_rest(sock, head, HEADER.size))
        if size > limit:
            raise Malformed(f"a message of {size} bytes, more than {limit}")
        message = json.loads(_rest(sock, b"", size))
        if not isinstance(message, dict):
            raise Malformed("not a JSON object")
    except (ValueError, UnicodeDecodeError, RecursionError) as e:
        _close(fds)
        raise Malformed(str(e)) from e
    except BaseException:
        _close(fds)
        raise
    return message, fds  # pyright: ignore[reportUnknownVariableType]


def _first(sock: socket.socket) -> tuple[bytes, tuple[int, ...]]:
    try:
        data, fds, _, _ = socket.recv_fds(sock, HEADER.size, MAX_FDS)
    except ConnectionResetError as e:
        raise Closed from e
    if not data:
        _close(tuple(fds))
        raise Closed
    return data, tuple(fds)


def _rest(sock: socket.socket, start: bytes, size: int) -> bytes:
    parts = [start]
    missing = size - len(start)
    while missing:
        try:
            chunk = sock.recv(min(missing, 1 << 20))
        except ConnectionResetError as e:
            raise Closed from e
        if not chunk:
            raise Closed
        parts.append(chunk)
        missing -= len(chunk)
    return b"".join(parts)


def _close(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)
