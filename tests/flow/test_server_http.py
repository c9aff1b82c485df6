"""The real server over HTTP: who may talk to it, and how it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import httpx2
import pytest
from host_rates import with_host_rates
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from hiera_mcp.errors import RequestError
from hiera_mcp.serving.http import BearerAuth, bind, check_exposure, is_loopback, transport_security

PATIENCE_S = 30.0
TOKEN = "a-token-of-this-test"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@contextmanager
def serving(folder: Path, *arguments: str, **env: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A server on a free port; yields the process and http://host:port."""
    argv = [sys.executable, "-m", "hiera_mcp", "serve", "--http", "--port", "0", *arguments]
    folders = {"HIERA_DATA_DIR": str(folder / "data"), "HIERA_CACHE_DIR": str(with_host_rates(folder / "cache"))}
    environment = {**os.environ, **folders, **env}
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        yield process, address(process)
    finally:
        process.kill()
        process.wait()


def address(process: subprocess.Popen[str]) -> str:
    """What the server says it listens on. The rest of its log is read away by a thread."""
    assert process.stderr
    found: Queue[str] = Queue()

    def read(lines: Any) -> None:
        with lines:
            for line in lines:
                if match := re.search(r"listening on (http://\S+)/mcp", line):
                    found.put(match[1])

    threading.Thread(target=read, args=(process.stderr,), daemon=True).start()
    return found.get(timeout=PATIENCE_S)


def post(url: str, **headers: str) -> httpx2.Response:
    return httpx2.post(f"{url}/mcp", json=INITIALIZE, headers=ACCEPT | headers)


def text_of(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on loopback without a token."""
    with serving(tmp_path_factory.mktemp("open")) as (_, url):
        yield url


@pytest.fixture(scope="module")
def guarded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a token."""
    with serving(tmp_path_factory.mktemp("guarded"), HIERA_HTTP_TOKEN=TOKEN) as (_, url):
        yield url


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_both_eras_of_the_protocol_work_over_http(open_server: str, mode: Any) -> None:
    async with Client(f"{open_server}/mcp", mode=mode) as client:
        tools = (await client.list_tools()).tools
        guide = await client.call_tool("hiera_guide", {})
        refused = await client.call_tool("hiera_guide", {"subject": "loop"})
    assert "hiera_candidates_evaluate" in {t.name for t in tools}
    assert guide.structured_content
    assert "Valid: topic." in text_of(refused)


async def test_progress_and_a_typed_error_arrive_over_http(open_server: str) -> None:
    seen: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message or "")

    async with Client(f"{open_server}/mcp") as client:
        arguments = {"source": "import no_such_module\n", "target": "cpu"}
        result = await client.call_tool("hiera_contract_build", arguments, progress_callback=hear)
    assert result.is_error
    assert "no_such_module" in text_of(result)
    assert any(message.startswith("contract_build") for message in seen)


class Session:
    """A session of the handshake protocol, by hand: to see what goes over the wire."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/mcp"
        self.headers = ACCEPT | {"Mcp-Session-Id": post(url).headers["mcp-session-id"]}
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any], **headers: str) -> httpx2.Response:
        return httpx2.post(self._url, json={"jsonrpc": "2.0", **message}, headers=self.headers | headers)

    def call(self, tool: Any, arguments: Any = None, **headers: str) -> httpx2.Response:
        params: dict[str, Any] = {"name": tool, "arguments": {} if arguments is None else arguments}
        return self.send({"id": 7, "method": "tools/call", "params": params}, **headers)

    def end(self) -> httpx2.Response:
        return httpx2.delete(self._url, headers=self.headers)


def answer_in(response: httpx2.Response) -> dict[str, Any]:
    """The JSON-RPC message in one JSON body or in an event stream."""
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return json.loads(lines[-1] if lines else response.text)


def test_a_tool_that_only_reads_answers_with_one_json_body_and_others_with_a_stream(open_server: str) -> None:
    session = Session(open_server)
    read = session.call("hiera_knowledge_search", {"query": "cp.async sm_80+"})
    assert read.headers["content-type"] == "application/json"
    assert read.headers["mcp-session-id"] == session.headers["Mcp-Session-Id"]
    answer = answer_in(read)
    assert answer["id"] == 7
    assert answer["result"]["structuredContent"]["entries"]
    assert json.loads(answer["result"]["content"][0]["text"]) == answer["result"]["structuredContent"]
    changed = session.call("hiera_job", {"job_id": "j_none"})
    assert changed.headers["content-type"].startswith("text/event-stream")
    assert answer_in(changed)["result"]["isError"]


def test_what_is_wrong_with_a_call_is_said_whichever_way_it_goes(open_server: str) -> None:
    session = Session(open_server)
    unknown = answer_in(session.call("hiera_knowledge_search", {"words": "x"}))["result"]
    assert unknown["isError"]
    assert "words: no such argument" in unknown["content"][0]["text"]
    assert answer_in(session.call("no_such_tool"))["result"]["isError"]
    assert answer_in(session.call("hiera_guide", "text"))["error"]["code"] == -32602
    assert answer_in(session.call(["hiera_guide"]))["error"]["code"] == -32602


def test_a_session_is_no_way_around_the_checks(open_server: str) -> None:
    session = Session(open_server)
    search = "hiera_knowledge_search"
    assert session.call(search, Host="evil.example").status_code == 421
    assert session.call(search, Origin="http://evil.example").status_code == 403
    assert session.call(search, Accept="text/html").status_code == 406
    assert session.call(search, **{"Content-Type": "text/plain"}).status_code == 400
    assert session.call(search, **{"Mcp-Session-Id": "unknown"}).status_code == 404
    assert session.call(search).status_code == 200
    assert session.end().status_code == 200
    assert session.call(search).status_code == 404


async def test_two_clients_share_one_server_and_its_database(open_server: str) -> None:
    async with Client(f"{open_server}/mcp") as one, Client(f"{open_server}/mcp", mode="legacy") as two:
        missing = [await c.call_tool("hiera_job", {"job_id": "j_none"}) for c in (one, two)]
    assert all(result.is_error for result in missing)


def test_health_needs_no_token(guarded_server: str) -> None:
    answer = httpx2.get(f"{guarded_server}/health")
    assert (answer.status_code, answer.json()["ok"]) == (200, True)


@pytest.mark.parametrize(
    "given",
    [
        None,
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN} {TOKEN}",
    ],
)
def test_a_request_without_the_token_is_refused(guarded_server: str, given: str | None) -> None:
    answer = post(guarded_server, **({"Authorization": given} if given else {}))
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert TOKEN not in answer.text


def test_two_authorization_headers_are_refused(guarded_server: str) -> None:
    headers = [*ACCEPT.items(), ("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer wrong")]
    assert httpx2.post(f"{guarded_server}/mcp", json=INITIALIZE, headers=headers).status_code == 401


def test_no_other_path_is_open_without_the_token(guarded_server: str) -> None:
    paths = ("/", "/mcp/", "/health/", "/health/../mcp", "/mcp/health", "/.well-known/oauth-protected-resource")
    codes = [httpx2.get(f"{guarded_server}{path}").status_code for path in paths]
    assert codes == [401] * len(paths)


async def test_a_client_with_the_token_works(guarded_server: str) -> None:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"bearer {TOKEN}"}) as http,
        Client(streamable_http_client(f"{guarded_server}/mcp", http_client=http)) as client,
    ):
        assert (await client.call_tool("hiera_guide", {"topic": "oa"})).structured_content


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.com"])
def test_a_foreign_host_header_is_refused(open_server: str, host: str) -> None:
    assert post(open_server, Host=host).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "https://127.0.0.1.evil.example", "null"])
def test_a_foreign_origin_is_refused(open_server: str, origin: str) -> None:
    assert post(open_server, Origin=origin).status_code == 403


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1"])
def test_a_page_of_this_machine_is_let_in(open_server: str, origin: str) -> None:
    assert post(open_server, Origin=origin).status_code == 200


def test_a_name_that_was_allowed_is_let_in(tmp_path: Path) -> None:
    with serving(tmp_path, "--allow-host", "gpu-box.example") as (_, url):
        assert post(url, Host="gpu-box.example:8000").status_code == 200
        assert post(url, Host="gpu-box.example").status_code == 200
        assert post(url, Host="other.example").status_code == 421


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_server_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as (process, url):
        assert httpx2.get(f"{url}/health").status_code == 200
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0


async def test_a_signal_ends_the_server_while_a_client_waits(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, url):
        with pytest.raises(BaseException):  # noqa: B017 - whatever the client makes of a closed connection
            async with Client(f"{url}/mcp") as client:
                source = "while True:\n    pass\n"

                async def stop(progress: float, total: float | None, message: str | None) -> None:
                    process.terminate()

                arguments = {"source": source, "target": "cpu", "wait_s": 300}
                await client.call_tool("hiera_contract_build", arguments, progress_callback=stop)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gpu-box.example"])
def test_listening_for_others_needs_a_token(host: str) -> None:
    with pytest.raises(RequestError, match="HIERA_HTTP_TOKEN"):
        check_exposure(host, None)
    with pytest.raises(RequestError):
        check_exposure(host, "")
    check_exposure(host, "token")


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("[::1]", True)]
)
def test_loopback_is_recognised(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
    check_exposure(host, None)


@pytest.mark.parametrize("host", ["localhost.evil.example", "0.0.0.0", "10.0.0.1", "", "127.0.0.1.evil.example"])
def test_nothing_else_is_taken_for_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_listening_on_all_interfaces_allows_this_machines_names_and_no_wildcard() -> None:
    hosts = transport_security("0.0.0.0", ["gpu-box.example"]).allowed_hosts
    assert {"localhost", "gpu-box.example", "gpu-box.example:*"} <= set(hosts)
    assert not any(host.startswith(("*", "0.0.0.0")) for host in hosts)


def test_an_address_in_use_is_said_with_what_to_do() -> None:
    with bind("127.0.0.1", 0) as taken, pytest.raises(RequestError, match="Choose another port"):
        bind("127.0.0.1", taken.getsockname()[1])


async def test_the_token_is_compared_whole_whatever_its_bytes() -> None:
    reached: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["path"])

    async def send(_: Any) -> None: ...

    guard = BearerAuth(app, "gé heim")
    for value in ("Bearer gé heim", "BEARER gé heim", "Bearer ge heim", "Bearer gé"):
        scope = {"type": "http", "path": value, "headers": [(b"authorization", value.encode())]}
        await guard(scope, None, send)  # pyright: ignore[reportArgumentType]
    assert reached == ["Bearer gé heim", "BEARER gé heim"]


def test_answers_do_not_wait_for_acknowledgements() -> None:
    with bind("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
