"""The second backend: Landlock and seccomp, for hosts (containers, mostly) that forbid namespaces.

It confines files, sockets, signals and tracing, but shares the host's process list and network stack, and cannot show a
file under another path. Work on the processor only: libcuda does not start under it (error 304).
"""

from hiera_mcp.errors import NoIsolationError
from hiera_mcp.sandbox.isolation.box import BoxSpec, Command
from hiera_mcp.sandbox.isolation.jailed import Jail, jail_command, jail_user, place, prepare_folder


class Landlock:
    """Landlock file rules, TCP and scope rules, a seccomp filter, and another user where we are root."""

    name = "landlock"

    def prepare(self, spec: BoxSpec) -> None:
        prepare_folder(spec)

    def command(self, spec: BoxSpec) -> Command:
        """The command line for a box.

        Raises:
            NoIsolationError: the box needs a GPU.
        """
        if spec.gpu is not None:
            raise NoIsolationError("CUDA does not start under Landlock.", todo="Install bubblewrap on this GPU host.")
        return jail_command(place(spec), Jail(jail_user(spec), confined=True))
