"""The program as a user starts it."""

import subprocess
import sys
from pathlib import Path

import pytest

from hiera_mcp import __version__
from hiera_mcp.cli.main import COMMANDS, command, main, parser_for
from hiera_mcp.cli.options import settings_of
from hiera_mcp.cli.run import scripted


def hiera(*words: str, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *flags, "-m", "hiera_mcp", *words], capture_output=True, text=True, timeout=60, check=False
    )


def test_version_imports_nothing_heavy() -> None:
    done = hiera("--version", flags=("-X", "importtime"))
    assert done.stdout == f"hiera-mcp {__version__}\n"
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "hiera_mcp" in loaded
    assert not loaded & {"torch", "cupy", "mcp", "pydantic", "anyio", "sqlite_utils"}


def test_help_names_every_command() -> None:
    done = hiera("--help")
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        parser_for([name]).parse_args([name, "--help"])
    assert done.value.code == 0
    assert "--data-dir" in capsys.readouterr().out or name in ("contract", "kb")
    assert callable(command(name).run)


def test_an_unknown_command_is_refused_with_the_valid_ones() -> None:
    done = hiera("optimise")
    assert done.returncode == 2
    assert "choose from" in done.stderr
    assert "demo" in done.stderr


def test_a_wrong_folder_is_one_line_and_status_2(tmp_path: Path) -> None:
    done = hiera("run", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == (
        f"hiera-mcp: There is no task file in {tmp_path}. Put the reference (Model, get_inputs, get_init_inputs) into "
        'task.py, or name it in run.toml: task = "…".\n'
    )
    assert done.stdout == ""


def test_a_server_that_is_not_there_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "task.py").write_text("x")
    (tmp_path / "round1").mkdir()
    (tmp_path / "round1" / "a.cpp").write_text("x")
    assert main(["run", str(tmp_path), "--url", "http://127.0.0.1:9/mcp"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("hiera-mcp: The connection to http://127.0.0.1:9/mcp failed")
    assert "Is it running" in err
    assert err.count("\n") == 1


def test_an_unknown_option_shows_the_usage_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["run", "x", "--bogus"], ["kb", "search", "x", "--bogus"]):
        with pytest.raises(SystemExit) as done:
            main(words)
        assert done.value.code == 2
        err = capsys.readouterr().err
        assert err.startswith("usage: hiera-mcp " + " ".join(words).split(" x")[0])
        assert "unrecognized arguments: --bogus" in err


@pytest.mark.parametrize("port", ["65536", "-1", "http", "99999999999"])
def test_a_port_that_is_none_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["serve", "--http", f"--port={port}"])
    assert done.value.code == 2
    assert f"{port} is not a port: 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--port", "8000"], ["--host", "0.0.0.0"], ["--token", "x"], ["--allow-host", "h"]])
def test_an_option_of_http_without_http_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *words]) == 2
    assert f"{words[0]} needs --http" in capsys.readouterr().err


def test_a_contract_from_a_file_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["contract", "build", "/nowhere/task.py"]) == 2
    assert "There is no file /nowhere/task.py" in capsys.readouterr().err


def test_url_and_in_memory_exclude_each_other() -> None:
    with pytest.raises(SystemExit):
        parser_for(["run"]).parse_args(["run", "x", "--url", "http://h/mcp", "--in-memory"])


def test_ablations_reach_the_settings_of_a_server_and_the_script_of_a_run(tmp_path: Path) -> None:
    words = ["--plan", "fixed-space=cpp", "--plan", "no-directions", "--no-memory"]
    for name in ("serve", "demo"):
        args = parser_for([name]).parse_args([name, *words])
        assert settings_of(args).plan == ("fixed-space=cpp", "no-directions", "no-memory")
    (tmp_path / "task.py").write_text("x")
    (tmp_path / "round1").mkdir()
    (tmp_path / "round1" / "a.cpp").write_text("x")
    args = parser_for(["run"]).parse_args(["run", str(tmp_path), *words])
    assert set(scripted(args).plan) == {"fixed-space=cpp", "no-directions", "no-memory"}


def test_an_ablation_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--plan", "no-brain"]) == 2
    assert "no-contract-files" in capsys.readouterr().err
