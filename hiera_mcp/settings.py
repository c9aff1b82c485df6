"""The only reader of the environment. Every variable of ours starts with HIERA_; XDG_… are the desktop standard's."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


def default_cache_dir(env: Mapping[str, str] | None = None) -> Path:
    """Where compiled candidates are kept between runs (XDG Base Directory Specification, which ignores relative paths).

    For root it is /var/cache (FHS 3.0, 5.5): boxes run as another user, who may not pass through root's home.
    """
    e = os.environ if env is None else env
    base = Path(e.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "hiera-mcp"
    return Path("/var/cache/hiera-mcp") if os.geteuid() == 0 else Path(e.get("HOME", "/tmp")) / ".cache" / "hiera-mcp"


@dataclass(frozen=True)
class Settings:
    """How this process was configured."""

    data_dir: Path
    """Where the database and the content-addressed files live (HIERA_DATA_DIR; default ~/.local/share/hiera-mcp)."""
    cache_dir: Path = field(default_factory=default_cache_dir)
    """Where compiled candidates are kept between runs (HIERA_CACHE_DIR; default see `default_cache_dir`)."""
    knowledge_dir: Path | None = None
    """A folder of the user's own knowledge entries (HIERA_KNOWLEDGE_DIR)."""
    unsafe_no_sandbox: bool = False
    """Run untrusted code without isolation (HIERA_UNSAFE_NO_SANDBOX=1). Only for a host that holds nothing of value."""
    plan: tuple[str, ...] = ()
    """What the planning of every run does without (HIERA_PLAN, words with blanks between them); see model/switches.py."""
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
    cache, knowledge = e.get("HIERA_CACHE_DIR"), e.get("HIERA_KNOWLEDGE_DIR")
    home = Path(e.get("XDG_DATA_HOME") or Path(e.get("HOME", "/tmp")) / ".local" / "share")
    return Settings(
        data_dir=Path(e.get("HIERA_DATA_DIR") or home / "hiera-mcp").expanduser().absolute(),
        cache_dir=Path(cache).expanduser().absolute() if cache else default_cache_dir(e),
        knowledge_dir=Path(knowledge).expanduser().absolute() if knowledge else None,
        plan=tuple((e.get("HIERA_PLAN") or "").split()),
        unsafe_no_sandbox=e.get("HIERA_UNSAFE_NO_SANDBOX") == "1",
        http_token=e.get("HIERA_HTTP_TOKEN") or None,
    )
