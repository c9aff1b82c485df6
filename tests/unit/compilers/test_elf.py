"""The ELF reader against the system's own libraries, readelf, and damaged files."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiera_mcp.sandbox.elf import BadElf, read


@pytest.fixture(scope="module")
def shared_object(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("elf")
    (folder / "a.cpp").write_text('#include <cstdio>\nextern "C" int shout() { return std::puts("x"); }\n')
    out = folder / "a.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-Wl,--hash-style=both", str(folder / "a.cpp"), "-o", str(out)], check=True
    )
    return out


def test_needed_libraries_and_symbols_are_found(shared_object: Path) -> None:
    found = read(shared_object.read_bytes())
    assert "libc.so.6" in found.needed and "puts" in found.undefined and "shout" in found.defined


def test_a_hidden_import_is_seen_though_nothing_is_exported(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    (tmp_path / "a.cpp").write_text(
        '#include <cstdlib>\n__attribute__((constructor)) static void f() { system("x"); }\n'
    )
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--hash-style=both"]
    subprocess.run(["g++", *flags, str(tmp_path / "a.cpp"), "-o", str(tmp_path / "a.so")], check=True)
    assert "system" in read((tmp_path / "a.so").read_bytes()).undefined


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_it_agrees_with_readelf(shared_object: Path, style: str, tmp_path: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    out = tmp_path / "b.so"
    source = str(shared_object.parent / "a.cpp")
    subprocess.run(["g++", "-shared", "-fPIC", f"-Wl,--hash-style={style}", source, "-o", str(out)], check=True)
    found = read(out.read_bytes())
    table = subprocess.run(["readelf", "--dyn-syms", "-W", str(out)], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^\s*\d+: \w+\s+\d+ \w+\s+\w+\s+\w+\s+(\w+) ([^\s@]+)", table, re.MULTILINE)
    assert sorted(found.undefined) == sorted(name for section, name in rows if section == "UND")
    assert sorted(found.defined) == sorted(name for section, name in rows if section != "UND")


@given(st.binary(max_size=200))
def test_no_bytes_upset_the_reader(data: bytes) -> None:
    for start in (b"", b"\x7fELF\x02\x01"):
        with pytest.raises(BadElf):
            read(start + data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=20), st.integers(0, 4000))
def test_a_damaged_file_is_read_or_refused(shared_object: Path, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(shared_object.read_bytes())
    for at, value in changes:
        data[at % len(data)] = value
    for damaged in (bytes(data), bytes(data[: len(data) - cut])):
        try:
            read(damaged)
        except BadElf:
            continue
