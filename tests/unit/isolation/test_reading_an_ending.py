"""Pure rules: what is printed, how an end is read, which limit is broken, which paths are translated."""

import signal
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.errors import SandboxError
from hiera_mcp.sandbox.isolation.box import BoxLimits
from hiera_mcp.sandbox.isolation.ending import Ending, interpret, status_value
from hiera_mcp.sandbox.isolation.folders import discard
from hiera_mcp.sandbox.isolation.jailed import translate
from hiera_mcp.sandbox.isolation.output import HEAD_BYTES, TAIL_BYTES, Output
from hiera_mcp.sandbox.isolation.usage import Usage, breach, folder_bytes

LIMITS = BoxLimits(memory_bytes=1000, disk_bytes=1000, processes=10)


@given(st.lists(st.binary(max_size=50_000), max_size=12))
def test_output_is_kept_whole_when_short_and_at_both_ends_when_long(parts: Any):
    collected = Output()
    for part in parts:
        collected.add(part)
    data, text = b"".join(parts), collected.text()
    assert collected.total == len(data)
    if len(data) <= HEAD_BYTES + TAIL_BYTES:
        assert text == data.decode("utf-8", "replace")
    else:
        assert f"{len(data) - HEAD_BYTES - TAIL_BYTES} bytes left out" in text
        assert text.startswith(data[:HEAD_BYTES].decode("utf-8", "replace"))


@given(status=st.text(), code=st.integers(0, 255), stopped=st.sampled_from([None, "timeout", "killed"]))
def test_any_status_text_is_survived(status: Any, code: Any, stopped: Any):
    status_value(status, "exit-code")
    if stopped or status_value(status, "exit-code") is not None:
        interpret(Ending(stopped, code, status, 0), LIMITS, "")


@given(st.integers(0, 128))
def test_an_exit_status_is_an_exit(code: Any):
    ending = Ending(None, code, f'{{"child-pid": 7}}\n{{ "exit-code": {code} }}', 0)
    assert interpret(ending, LIMITS, "") == ("exit", code)


@given(st.sampled_from(sorted(set(signal.Signals) - {signal.SIGXFSZ})))
def test_128_and_more_is_a_signal(number: Any):
    ending = Ending(None, 128 + number, f'{{"exit-code": {128 + number}}}', 0)
    assert interpret(ending, LIMITS, "") == ("signal", number)


def test_our_own_reason_comes_first():
    assert interpret(Ending("timeout", -9, "", 5000), LIMITS, "")[0] == "timeout"


def test_no_exit_code_means_that_the_program_never_ran():
    with pytest.raises(SandboxError, match="No permissions"):
        interpret(Ending(None, 1, '{"child-pid": 7}', 0), LIMITS, "bwrap: No permissions to create new namespace\n")


def test_a_first_process_killed_by_others_is_a_signal():
    assert interpret(Ending(None, -9, "", 0), LIMITS, "") == ("signal", 9)


def test_a_failure_close_to_the_memory_limit_is_the_memory_limit():
    near = Ending(None, 1, '{"exit-code": 1}', 950)
    assert interpret(near, LIMITS, "")[0] == "memory_limit"
    fine = Ending(None, 0, '{"exit-code": 0}', 950)
    assert interpret(fine, LIMITS, "") == ("exit", 0)


@pytest.mark.parametrize(
    ("usage", "disk", "expected"),
    [
        (Usage(10, 1000, 0), 1000, None),
        (Usage(11, 0, 0), 0, "process_limit"),
        (Usage(1, 1001, 0), 0, "memory_limit"),
        (Usage(1, 0, 0), 1001, "disk_limit"),
        (Usage(1, 0, 600), 600, "disk_limit"),
    ],
)
def test_a_limit_is_broken_by_more_than_it(usage: Any, disk: Any, expected: Any):
    assert breach(usage, disk, LIMITS) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/box", "/w"),
        ("/box/a.cu", "/w/a.cu"),
        ("-I/box/include", "-I/w/include"),
        ("--out=/box/a", "--out=/w/a"),
        ("/opt/hiera:/box", "/s/opt/hiera:/w"),
        ("/boxes/a", "/boxes/a"),
        ("/usr/box/a", "/usr/box/a"),
        ("inbox", "inbox"),
    ],
)
def test_paths_of_the_box_are_translated_and_others_are_not(text: Any, expected: Any):
    assert translate(text, {"/box": "/w", "/opt/hiera": "/s/opt/hiera"}) == expected


def test_hostile_folders_are_removed_without_following_links(tmp_path: Any):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    folder = tmp_path / "work"
    script = f"""
        mkdir {folder} && cd {folder} && ln -s {precious} link
        p=$(printf '{"d" * 100}/%.0s' $(seq 30))
        for i in 1 2 3; do mkdir -p $p && cd $p; done
        cd {folder}; mkdir shut; touch shut/file; chmod 000 shut
    """
    subprocess.run(["sh", "-c", script], check=True)
    assert folder_bytes(folder, enough=100 << 20) > 100 << 20  # deeper than a path can name: counts as too much
    discard(folder)
    assert not folder.exists()
    assert (precious / "file").exists()
