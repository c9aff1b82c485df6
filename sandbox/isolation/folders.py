"""Removing a folder in which untrusted code could write."""

import subprocess
from pathlib import Path


def discard(folder: Path) -> None:
    """Remove a work folder, whatever a box left in it: folders too deep for a recursive removal, folders without any
    permission, links (which are never followed).

    Raises:
        OSError: something of it cannot be removed.
    """
    _run("rm", "-rf", "--", str(folder))
    if folder.is_symlink() or folder.exists():
        _run("chmod", "-R", "u+rwx", "--", str(folder))
        problem = _run("rm", "-rf", "--", str(folder))
        if problem:
            raise OSError(f"{folder} cannot be removed: {problem.splitlines()[0]}")


def _run(*argv: str) -> str:
    """What the command complained of."""
    path = {"PATH": "/usr/bin:/bin"}
    ran = subprocess.run(argv, env=path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return ran.stderr if ran.returncode else ""
