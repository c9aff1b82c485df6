"""What a user is told when a server cannot be reached, refuses, or gives up."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from hiera_mcp.cli.connection import ConnectionFailed, Where, connected
from hiera_mcp.errors import RequestError
from hiera_mcp.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", cache_dir=tmp_path / "cache")


@contextmanager
def answering(status: int) -> Generator[str]:
    """A server that answers everything with one status."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_DELETE = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "name", "hint"),
    [
        (401, "Unauthorized", "--token"),
        (404, "Not Found", "/mcp"),
        (421, "Misdirected Request", "--allow-host"),
        (500, "Internal Server Error", "Is it running"),
    ],
)
async def test_a_refusal_over_http_is_told_with_its_status_and_what_to_do(
    settings: Settings, status: int, name: str, hint: str
) -> None:
    with answering(status) as url, pytest.raises(ConnectionFailed) as failed:
        async with connected(settings, Where(url=url)):
            pass
    assert f"{status} {name}" in str(failed.value)
    assert hint in str(failed.value)


async def test_an_address_without_a_scheme_is_refused(settings: Settings) -> None:
    with pytest.raises(RequestError, match="`localhost:8000` is not a URL"):
        async with connected(settings, Where(url="localhost:8000")):
            pass


async def test_a_server_of_ours_that_gives_up_is_told_in_its_own_words(tmp_path: Path, settings: Settings) -> None:
    settings.data_dir.write_text("a file, not a folder")
    with pytest.raises(ConnectionFailed) as failed:
        async with connected(settings):
            pass
    assert str(failed.value).startswith(f"Cannot open the database {settings.data_dir}/hiera.db")
    assert "--data-dir" in str(failed.value)


async def test_a_folder_of_the_packages_name_is_not_taken_for_it(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hiera_mcp").mkdir()  # as in the parent folder of a checkout
    monkeypatch.chdir(tmp_path)
    async with connected(settings) as client:
        assert (await client.list_tools()).tools


@pytest.mark.parametrize("error", [BrokenPipeError("the reader left"), OSError(28, "No space left on device")])
async def test_an_error_of_the_code_that_uses_the_connection_is_not_blamed_on_it(
    settings: Settings, error: OSError
) -> None:
    with pytest.raises(OSError) as raised:
        async with connected(settings, Where(in_memory=True)):
            raise error
    assert raised.value is error
