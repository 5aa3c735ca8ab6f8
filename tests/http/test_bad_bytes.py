"""What only a real connection can send: lies about lengths, bytes that are no HTTP."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest

from tests.http.checks import MARKER, MEMORY, NAMESPACES, assert_problem
from tests.support.process import ServerProcess
from tests.support.service import draft

TIMEOUT = 20.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all tests here."""
    with ServerProcess(tmp_path_factory.mktemp("bytes") / "data") as started:
        yield started


@pytest.fixture(autouse=True)
def _nothing_changes(server: ServerProcess) -> Iterator[None]:
    """Afterwards the server must answer, and hold and tell what it did before."""
    before = _state(server)
    yield
    assert _state(server) == before


def _state(server: ServerProcess) -> tuple[str, str, str]:
    with server.client() as client:
        replies = [
            client.get(path)
            for path in (f"{MEMORY}/export", "/api/v1/agents/dev/events", NAMESPACES)
        ]
    assert [reply.status_code for reply in replies] == [200, 200, 200]
    return replies[0].text, replies[1].text, replies[2].text


def _connect(server: ServerProcess) -> socket.socket:
    address = urlsplit(server.url)
    assert address.hostname is not None
    return socket.create_connection((address.hostname, address.port or 0), timeout=TIMEOUT)


def _head(server: ServerProcess, method: str, path: str, *lines: str) -> bytes:
    head = [f"{method} {path} HTTP/1.1", "Host: memorywall.test", f"X-API-Key: {server.dev_key}"]
    return "\r\n".join([*head, *lines, "", ""]).encode()


def _reply(connection: socket.socket) -> httpx.Response:
    """What comes back, up to the announced length or the end of the connection."""
    received = b""
    while True:
        head, found, body = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): text.strip()
            for name, _, text in (line.partition(":") for line in lines[1:])
        }
        if found and len(body) >= int(headers.get("content-length", "0")):
            break
        piece = connection.recv(65_536)
        if not piece:
            break
        received += piece
    return httpx.Response(int(lines[0].split()[1]), headers=headers, content=body)


BODY = json.dumps(draft(value={"text": MARKER})).encode()


@pytest.mark.parametrize("length", ["1048577", "999999999999", "9" * 18])
def test_a_length_over_the_limit_is_refused_before_the_body(
    server: ServerProcess, length: str
) -> None:
    with _connect(server) as connection:
        connection.sendall(_head(server, "POST", MEMORY, f"Content-Length: {length}") + BODY)
        response = _reply(connection)
    assert_problem(response, 413, "VALUE_TOO_LARGE")
    assert MARKER not in response.text


def test_pieces_over_the_limit_are_refused(server: ServerProcess) -> None:
    piece = MARKER.encode() * 1_000
    chunk = f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
    with _connect(server) as connection:
        connection.sendall(_head(server, "POST", MEMORY, "Transfer-Encoding: chunked"))
        sent = 0
        try:
            while sent <= 1024 * 1024:
                connection.sendall(chunk)
                sent += len(piece)
            response = _reply(connection)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise AssertionError("the server hung up without an answer") from error
    assert_problem(response, 413, "VALUE_TOO_LARGE")
    assert MARKER not in response.text


def test_a_body_shorter_than_announced_makes_nothing(server: ServerProcess) -> None:
    for cut in (0, 1, len(BODY) // 2, len(BODY) - 1, len(BODY)):
        announced = len(BODY) + 1
        with _connect(server) as connection:
            head = _head(server, "POST", MEMORY, f"Content-Length: {announced}")
            connection.sendall(head + BODY[:cut])
            connection.shutdown(socket.SHUT_WR)
            assert MARKER.encode() not in connection.recv(65_536)


def test_a_body_longer_than_announced_is_not_read_as_whole(server: ServerProcess) -> None:
    with _connect(server) as connection:
        connection.sendall(_head(server, "POST", MEMORY, f"Content-Length: {len(BODY) - 9}") + BODY)
        response = _reply(connection)
    # The surplus is no HTTP either, and the server may find that out first.
    assert response.status_code == 400, response.text
    assert MARKER not in response.text


@pytest.mark.parametrize(
    ("version", "lines", "status"),
    [("1.1", "", 400), ("1.1", "Host:\r\n", 200), ("1.0", "", 200)],
)
def test_http_1_1_needs_a_host(
    server: ServerProcess, version: str, lines: str, status: int
) -> None:
    with _connect(server) as connection:
        connection.sendall(f"GET /health HTTP/{version}\r\n{lines}\r\n".encode())
        assert _reply(connection).status_code == status


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: -1",), ("Content-Length: ten",),
        ("Content-Length: 1", "Content-Length: 2"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"), ("no colon here",),
        ("X-Agent-ID: a\x00b",), (" folded: line",), ("X: " + "y" * 200_000,),
    ],
    ids=["negative", "word", "two-lengths", "both", "no-colon", "nul", "folded", "huge-header"],
)  # fmt: skip
def test_invalid_http_is_refused(server: ServerProcess, lines: tuple[str, ...]) -> None:
    with _connect(server) as connection:
        received = b""
        # The server may close the connection before everything is sent.
        with suppress(OSError):
            connection.sendall(_head(server, "POST", MEMORY, *lines) + b"zz" + BODY)
            connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            received = connection.recv(65_536)
    if received:
        assert 400 <= int(received.split()[1]) < 500, received
    assert MARKER.encode() not in received


@pytest.mark.parametrize(
    "name", ["%ff", "%C3%28", "%ED%A0%80", "a%00b", "%E2%80%8B", "a%0Ab", "%2A", "%zz", "%"]
)
def test_invalid_namespace_in_a_path_is_refused(server: ServerProcess, name: str) -> None:
    change = json.dumps({"permissions": {"default": "read"}}).encode()
    with _connect(server) as connection:
        head = _head(server, "PATCH", f"{NAMESPACES}/{name}", f"Content-Length: {len(change)}")
        connection.sendall(head + change)
        response = _reply(connection)
    assert response.status_code in (400, 404, 422), response.text
    assert_problem(response, response.status_code)


@pytest.mark.parametrize("path", ["%ff", "%00", "..%2f..", "mem_%0a", "%F0%9F%A7%A0"])
def test_an_id_in_a_path_that_is_no_id_is_not_found(server: ServerProcess, path: str) -> None:
    with _connect(server) as connection:
        connection.sendall(_head(server, "GET", f"{MEMORY}/{path}"))
        response = _reply(connection)
    assert response.status_code in (400, 404), response.text
    assert_problem(response, response.status_code)


def test_garbage_is_hung_up_on(server: ServerProcess) -> None:
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\x00" * 1_000,
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0",
    ):
        with _connect(server) as connection:
            try:
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                received = connection.recv(65_536)
            except (BrokenPipeError, ConnectionResetError):
                received = b""
        assert not received or received.startswith(b"HTTP/1.1 400"), received
