"""The second backend: Landlock and seccomp, for hosts (containers, mostly) that forbid namespaces.

It confines files, sockets, signals and tracing, but shares the host's process list and network stack, and cannot show a
file under another path. Work on the processor only: libcuda does not start under it (error 304).
"""

import os

from hiera_mcp.errors import NoIsolationError
from hiera_mcp.sandbox.isolation.box import BoxSpec, Command
from hiera_mcp.sandbox.isolation.identity import box_user, hand_over, hidden_paths
from hiera_mcp.sandbox.isolation.jailed import TMP, Jail, jail_command, place


class Landlock:
    """Landlock file rules, TCP and scope rules, a seccomp filter, and another user where we are root."""

    name = "landlock"

    def prepare(self, spec: BoxSpec) -> None:
        if spec.writable:
            (spec.work / TMP).mkdir(exist_ok=True)
        hand_over(spec.work, _user(spec))

    def command(self, spec: BoxSpec) -> Command:
        """The command line for a box.

        Raises:
            NoIsolationError: the box needs a GPU.
        """
        if spec.gpu is not None:
            raise NoIsolationError("CUDA does not start under Landlock.", todo="Install bubblewrap on this GPU host.")
        user = _user(spec)
        return jail_command(place(spec), Jail(user=user if user != os.geteuid() else None, confined=True))


def _user(spec: BoxSpec) -> int:
    """Root remains, without a capability, where nobody else can reach what the box needs; the probes then refuse it."""
    user = box_user()
    return os.geteuid() if hidden_paths(spec, user) else user
