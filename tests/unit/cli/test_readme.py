"""The README says what is true."""

import re
import subprocess
import sys
from pathlib import Path

from hiera_mcp.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text()


def test_the_table_of_tools_is_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "readme_tools.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"run scripts/readme_tools.py\n{done.stderr}"


def test_every_command_it_shows_exists() -> None:
    shown = set(re.findall(r"hiera-mcp ([a-z]+)", README))
    assert shown
    assert shown <= set(COMMANDS)


def test_every_option_it_shows_exists() -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", (ROOT / "docs" / "cli.md").read_text()))
    shown = {
        option
        for line in re.findall(r"hiera-mcp [a-z]+[^`\n]*", README)
        for option in re.findall(r"--[a-z][a-z-]+", line)
    }
    assert len(shown) >= 5
    assert shown <= known


def test_every_file_it_links_to_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("http")]
    assert links
    assert all((ROOT / link).exists() for link in links)
