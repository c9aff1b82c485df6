"""`python -P -m hiera_mcp.sandbox.launcher --fd N --cache DIR [--unsafe]`: started by `LocalExecutor`, never by hand."""

import argparse
import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

from hiera_mcp.sandbox.launcher.channel import Channel
from hiera_mcp.sandbox.launcher.guardian import stay_behind
from hiera_mcp.sandbox.launcher.host import Host
from hiera_mcp.sandbox.launcher.service import Service


def main() -> None:
    arguments = _arguments()
    stay_behind(arguments.fd)
    asyncio.run(_serve(socket.socket(fileno=arguments.fd), arguments.cache, arguments.unsafe))
    # What could not be ended in time is ended by the guardian: do not wait for it.
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


if __name__ == "__main__":
    main()
