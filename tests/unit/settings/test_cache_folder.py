"""Where compiled candidates are kept, as the environment says."""

import os
from pathlib import Path

import pytest

from hiera_mcp.settings import from_environment


def test_the_cache_lies_where_the_desktop_standard_says():
    assert from_environment({"HOME": "/home/u", "XDG_CACHE_HOME": "/caches"}).cache_dir == Path("/caches/hiera-mcp")


def test_a_variable_of_our_own_goes_first():
    env = {"HOME": "/home/u", "XDG_CACHE_HOME": "/caches", "HIERA_CACHE_DIR": "/mine"}
    assert from_environment(env).cache_dir == Path("/mine")


@pytest.mark.parametrize("base", ["", "relative/path"])
def test_what_the_standard_ignores_is_ignored_and_root_keeps_clear_of_its_home(
    base: str, monkeypatch: pytest.MonkeyPatch
):
    env = {"HOME": "/home/u", "XDG_CACHE_HOME": base}
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert from_environment(env).cache_dir == Path("/home/u/.cache/hiera-mcp")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert from_environment(env).cache_dir == Path("/var/cache/hiera-mcp")
