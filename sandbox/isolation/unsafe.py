"""No isolation: limits and whole-tree killing only. For a host that holds nothing of value, and only on request.

A candidate can then read every file of the user, reach the network, kill and trace the user's other processes, and read
this server's environment.
"""

from hiera_mcp.sandbox.isolation.box import BoxSpec, Command
from hiera_mcp.sandbox.isolation.jailed import Jail, jail_command, jail_user, place, prepare_folder


class Unsafe:
    """rlimits and a supervisor, nothing else. Where root starts it, still another user: root has no process limit."""

    name = "unsafe"

    def prepare(self, spec: BoxSpec) -> None:
        prepare_folder(spec)

    def command(self, spec: BoxSpec) -> Command:
        return jail_command(place(spec), Jail(jail_user(spec), confined=False))
