"""`python -P -m hiera_mcp.sandbox.launcher --fd N --cache DIR [--unsafe]`: started by `LocalExecutor`, never by hand."""

import argparse
import asyncio
import ctypes
import os
import signal
import socket
import sys
from pathlib import Path

from hiera_mcp.sandbox.launcher.channel import Channel
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.service import Service

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    arguments = _arguments()
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    asyncio.run(_serve(socket.socket(fileno=arguments.fd), arguments.cache, arguments.unsafe))
    # What could not be ended in time dies with this process (PDEATHSIG of every box): do not wait for it.
    sys.stderr.flush()
    os._exit(0)


async def _serve(sock: socket.socket, cache: Path, unsafe: bool) -> None:
    sock.setblocking(False)
    channel = await Channel.open(sock)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, channel.abort)
    host = await Host.open(cache, unsafe)
    await Service(channel, host).serve()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hiera-mcp launcher", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="the launcher's end of the socketpair")
    parser.add_argument("--cache", type=Path, required=True, help="folder of the compile cache")
    parser.add_argument("--unsafe", action="store_true", help="run untrusted code without isolation")
    return parser.parse_args()


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


if __name__ == "__main__":
    main()
