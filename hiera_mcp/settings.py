"""The only reader of the environment. Every variable starts with HIERA_."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """How this process was configured."""

    data_dir: Path
    """Where the database and the content-addressed files live (HIERA_DATA_DIR; default ~/.local/share/hiera-mcp)."""
    knowledge_dir: Path | None = None
    """A folder of the user's own knowledge entries (HIERA_KNOWLEDGE_DIR)."""
    unsafe_no_sandbox: bool = False
    """Run untrusted code without isolation (HIERA_UNSAFE_NO_SANDBOX=1). Only for a host that holds nothing of value."""
    http_token: str | None = None
    """Bearer token of the HTTP server (HIERA_HTTP_TOKEN); required when it listens on more than loopback."""

    @property
    def database(self) -> Path:
        return self.data_dir / "hiera.db"

    @property
    def blobs(self) -> Path:
        return self.data_dir / "blobs"


def from_environment(env: Mapping[str, str] | None = None) -> Settings:
    """Settings as the environment gives them; command-line flags override them with `dataclasses.replace`."""
    e = os.environ if env is None else env
    knowledge = e.get("HIERA_KNOWLEDGE_DIR")
    home = Path(e.get("XDG_DATA_HOME") or Path(e.get("HOME", "/tmp")) / ".local" / "share")
    return Settings(
        data_dir=Path(e.get("HIERA_DATA_DIR") or home / "hiera-mcp").expanduser().absolute(),
        knowledge_dir=Path(knowledge).expanduser().absolute() if knowledge else None,
        unsafe_no_sandbox=e.get("HIERA_UNSAFE_NO_SANDBOX") == "1",
        http_token=e.get("HIERA_HTTP_TOKEN") or None,
    )
