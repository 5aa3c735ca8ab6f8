"""The connections of blocking clients, with servers that answer in every way that HTTP allows."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memorywall import Client
from memorywall.exceptions import MemoryTransportError
from memorywall.sdk.connections import Connections, _exchange, can_connect
from memorywall.sdk.effects import Request
from memorywall.sdk.http import tls_context

HEALTH = Request(operation="health")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
PATIENCE = 20.0


class ScriptedServer:
    """Answers requests with given bytes.

    connections: for each connection what is sent after each request; then the connection ends
    requests: the requests that have come, with the number of their connection
    """

    def __init__(self, *connections: list[bytes], context: ssl.SSLContext | None = None) -> None:
        self._connections = connections
        self._context = context
        self._is_closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.requests: list[tuple[int, bytes]] = []
        self.ended = [threading.Event() for _ in connections]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        for number in range(len(self._connections)):
            accepted, _ = self._listener.accept()
            if self._is_closed:
                accepted.close()
                return
            self._threads.append(threading.Thread(target=self._serve, args=(number, accepted)))
            self._threads[-1].start()

    def _serve(self, number: int, accepted: socket.socket) -> None:
        with contextlib.suppress(OSError), accepted:
            if self._context is not None:
                accepted = self._context.wrap_socket(accepted, server_side=True)
            accepted.settimeout(PATIENCE)
            with accepted:
                for answer in self._connections[number]:
                    self.requests.append((number, _read_request(accepted)))
                    accepted.sendall(answer)
        self.ended[number].set()

    def close(self) -> None:
        self._is_closed = True
        with contextlib.suppress(OSError):
            # The thread that accepts waits for it, unless it has ended.
            socket.create_connection(("127.0.0.1", self.port), PATIENCE).close()
        for thread in self._threads:
            thread.join(PATIENCE)
        self._listener.close()


def _read_request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _receive(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        (int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0
    )
    while len(body) < length:
        body += _receive(connection)
    return head + b"\r\n\r\n" + body


def _receive(connection: socket.socket) -> bytes:
    part = connection.recv(65_536)
    if not part:
        raise ConnectionError
    return part


@contextlib.contextmanager
def client_of(
    *connections: list[bytes], path: str = "", timeout: float = PATIENCE
) -> Iterator[tuple[Client, ScriptedServer]]:
    server = ScriptedServer(*connections)
    try:
        with Client(f"http://127.0.0.1:{server.port}{path}", "key", timeout=timeout) as client:
            yield client, server
    finally:
        server.close()


def body_of(client: Client) -> bytes:
    return client.driver.send(HEALTH).body


def test_requests_share_a_connection() -> None:
    with client_of([OK, OK]) as (client, server):
        assert body_of(client) == body_of(client) == b"{}"
        assert [number for number, _ in server.requests] == [0, 0]
        head = server.requests[0][1]
        assert head.startswith(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:")
        assert b"\r\nX-API-Key: key\r\n" in head


def test_a_body_is_sent_with_its_headers_below_the_path_of_the_url() -> None:
    with client_of([OK], path="/memory/") as (client, server):
        request = Request(
            operation="put_saved_state", path={"session_id": "ä", "name": "."}, body=1
        )
        assert client.driver.for_subject("Ann ä").send(request).status == 200
        ((_, sent),) = server.requests
        first, _, rest = sent.partition(b"\r\n")
        assert first.startswith(b"PUT /memory/")
        assert b"/%C3%A4/" in first
        assert first.endswith(b"/%2E HTTP/1.1")
        assert b"\r\nX-Subject: Ann \xc3\xa4\r\n" in rest
        assert rest.endswith(b"\r\nContent-Length: 1\r\n\r\n1")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
    ],
)
def test_a_connection_that_ends_is_not_used_again(answer: bytes) -> None:
    with client_of([answer], [OK]) as (client, server):
        assert body_of(client) == b"{}"
        assert body_of(client) == b"{}"
        assert [number for number, _ in server.requests] == [0, 1]


def test_a_connection_that_the_server_has_closed_is_replaced() -> None:
    with client_of([OK], [OK]) as (client, server):
        assert body_of(client) == b"{}"
        assert server.ended[0].wait(PATIENCE)
        assert body_of(client) == b"{}"
        assert [number for number, _ in server.requests] == [0, 1]


def test_bodies_in_chunks_and_interim_responses_are_read() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    absent = b"HTTP/1.1 204 No Content\r\n\r\n"
    with client_of([chunked, interim + OK, absent, OK]) as (client, server):
        assert [body_of(client) for _ in range(4)] == [b"{}", b"{}", b"", b"{}"]
        assert {number for number, _ in server.requests} == {0}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 O",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n",
        b"this is no response\r\n\r\n",
    ],
)
def test_a_part_of_a_response_is_a_lost_response(answer: bytes) -> None:
    with client_of([answer]) as (client, _):
        with pytest.raises(MemoryTransportError, match="no whole reply came") as lost:
            client.driver.send(HEALTH)
        assert lost.value.sent


def test_a_silent_server_is_waited_for_as_long_as_said() -> None:
    with client_of([b"HTTP/1.1 200 OK\r\n", b""], timeout=0.1) as (client, _):
        with pytest.raises(MemoryTransportError, match="ReadTimeout") as lost:
            client.driver.send(HEALTH)
        assert lost.value.sent


def test_a_server_that_is_not_there_has_received_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", "key") as client:
        with pytest.raises(MemoryTransportError, match="is the server running") as lost:
            client.driver.send(HEALTH)
        assert not lost.value.sent


@pytest.mark.parametrize(
    ("answer", "is_open", "status", "stays"),
    [
        (OK, True, 200, True),
        (OK, False, 200, False),
        (OK.replace(b"\r\n\r\n", b"\r\nConnection: Close\r\n\r\n"), True, 200, False),
        (OK.replace(b"1.1", b"1.0"), True, 200, False),
        # A server may refuse a request that it has not read, and close the connection.
        (OK.replace(b"200 OK", b"413 Too Large"), False, 413, False),
    ],
)
def test_a_connection_stays_if_both_sides_keep_it(
    answer: bytes, is_open: bool, status: int, stays: bool
) -> None:
    own, other = socket.socketpair()
    with own, other:
        other.sendall(answer)
        if not is_open:
            other.close()
        assert _exchange(own, b"a request") == (status, b"{}", stays)


def test_threads_get_their_own_responses() -> None:
    answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % number for number in range(8)]
    with client_of(*([answer] * 20 for answer in answers)) as (client, server):
        with ThreadPoolExecutor(8) as threads:
            bodies = list(threads.map(lambda _: body_of(client), range(20)))
        assert sorted(bodies) == sorted(b"%d" % number for number, _ in server.requests)


@pytest.mark.parametrize(
    "url", ["ftp://host", "http://", "http://ann:word@host", "http://host/?a=b", "nothing"]
)
def test_unusual_servers_are_left_to_httpx(url: str) -> None:
    assert not can_connect(url, {}, 1, tls_context("http://host"))


def test_proxies_and_values_that_no_header_has_are_left_to_httpx(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = tls_context("http://host")
    assert can_connect("http://host", {b"X-Agent-ID": "Ännchen".encode()}, 1, context)
    assert not can_connect("http://host", {b"X-Agent-ID": b"a\r\nX-Other: b"}, 1, context)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    assert not can_connect("http://host", {}, 1, context)


def test_tls_verifies_the_server(tmp_path: Path) -> None:
    certificate = tmp_path / "server.pem"
    _write_certificate(certificate)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=certificate)
    server = ScriptedServer([OK, OK], [OK], context=serving)
    url = f"https://127.0.0.1:{server.port}"
    try:
        connections = Connections(url, {}, PATIENCE, trusting)
        for _ in range(2):
            assert connections.send("GET", "/health", (), None) == (200, b"{}")
        connections.close()
        with Client(url, "key") as client:
            with pytest.raises(MemoryTransportError, match="cannot be reached") as lost:
                client.driver.send(HEALTH)
            assert not lost.value.sent
    finally:
        server.close()


def _write_certificate(path: Path) -> None:
    """Writes a key and a certificate of this machine that nobody has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(pem))
