"""Show a box's user what only root can reach, without opening it to anyone else.

An interpreter below /root, say, cannot be bound by `nobody`. In a mount namespace that lives only as long as the box, root
binds such paths to places that everybody may enter, and only then changes the user.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hiera_mcp.sandbox.isolation.box import BoxSpec

_PLACES = Path("/run/hiera-mcp/mounts")
"""Only root stages, and only root may write in /run: nobody else can put something there."""
_SCRIPT = 'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 125; shift 2; done; shift; exec "$@"'


@dataclass(frozen=True)
class Staged:
    """A command's first words, and the spec with the paths that hold behind them."""

    prefix: tuple[str, ...]
    spec: BoxSpec


def stage(spec: BoxSpec, hidden: Iterable[Path]) -> Staged:
    """Bind each path of `hidden` to a place of its own."""
    places = {path: _mount_point(number, path.is_dir()) for number, path in enumerate(dict.fromkeys(hidden))}
    if not places:
        return Staged((), spec)
    pairs = tuple(word for path, place in places.items() for word in (str(path), str(place)))
    binds = tuple(replace(bind, host=places.get(bind.host, bind.host)) for bind in spec.binds)
    prefix = ("unshare", "--mount", "--", "/bin/sh", "-c", _SCRIPT, "sh", *pairs, "--")
    return Staged(prefix, replace(spec, work=places.get(spec.work, spec.work), binds=binds))


@cache
def can_stage() -> bool:
    """Whether this process may make a mount namespace and mount in it; found by doing."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    try:
        place = _mount_point(0, True)
    except OSError:
        return False
    attempt = ["unshare", "--mount", "--", "mount", "--bind", "/usr", str(place)]
    return subprocess.run(attempt, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0


def _mount_point(number: int, folder: bool) -> Path:
    """An empty folder or file. All boxes of all servers share them, because each mounts in a namespace of its own."""
    for above in (_PLACES.parent, _PLACES):
        above.mkdir(exist_ok=True)
        above.chmod(0o755)  # whatever the umask is
    place = _PLACES / f"{'folder' if folder else 'file'}{number}"
    if folder:
        place.mkdir(exist_ok=True)
    else:
        place.touch()
    return place
