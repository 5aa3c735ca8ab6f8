"""Which clients count as too slow, and a server over TLS that closes their connections."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from uvicorn.server import ServerState

from memorywall.configuration.values import checked_value
from memorywall.records.errors import ConfigurationError
from memorywall.server.serve import load_tls
from memorywall.server.slow_clients import LEAST_RATE, SlowClientGuard, Stage
from memorywall.server.uvicorn_transport import LARGEST_HEAD, CoalescingProtocol
from memorywall.settings import SETTINGS, Settings
from tests.support.process import START_LIMIT, ServerProcess, run_cli


class _Connection:
    """A connection whose stage the test sets."""

    def __init__(self, stage: tuple[Stage, object, int] | None = None) -> None:
        self.now = stage
        self.aborted = False

    def stage(self) -> tuple[Stage, object, int] | None:
        return self.now

    def abort(self) -> None:
        self.aborted = True


class _Watched:
    """A guard with a timeout of 10 seconds over one connection."""

    def __init__(self, *stage: object) -> None:
        self.seconds = 0.0
        self.connection = _Connection()
        self._guard = SlowClientGuard([self.connection], 10.0, lambda: self.seconds)
        self.check(0, *stage)

    def check(self, seconds: float, *stage: object) -> bool:
        self.seconds += seconds
        self.connection.now = stage or None  # type: ignore[assignment]
        self._guard.check()
        return self.connection.aborted


def test_head_must_be_complete_within_the_timeout() -> None:
    watched = _Watched(Stage.HEAD, None, 0)
    assert not watched.check(9, Stage.HEAD, None, 0)
    assert watched.check(2, Stage.HEAD, None, 0)


def test_each_request_has_its_own_time() -> None:
    requests = [object() for _ in range(5)]
    watched = _Watched(Stage.HEAD, None, 0)
    for request in requests:
        assert not watched.check(9, Stage.HEAD, request, 0)
    assert not watched.check(9), "the server is at work"
    assert not watched.check(99)
    assert not watched.check(9, Stage.HEAD, requests[-1], 0)
    assert not watched.check(9, Stage.BODY, requests[-1], 0)


def test_body_needs_a_rate() -> None:
    request, size = object(), 500
    watched = _Watched(Stage.BODY, request, size)
    for _ in range(30):
        size += LEAST_RATE
        assert not watched.check(1, Stage.BODY, request, size)
    drip = _Watched(Stage.BODY, request, 500)
    assert not drip.check(9, Stage.BODY, request, 501)
    assert drip.check(2, Stage.BODY, request, 502)


def test_reply_must_be_read_within_each_timeout() -> None:
    request = object()
    watched = _Watched(Stage.REPLY, request, 9_000)
    for waiting in (8_000, 7_000, 6_999):
        assert not watched.check(9, Stage.REPLY, request, waiting)
    assert not watched.check(9, Stage.REPLY, request, 7_500)
    assert watched.check(2, Stage.REPLY, request, 7_500)


class _Wire(asyncio.Transport):
    """A transport that notes what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        return None

    resume_reading = pause_reading


@pytest.mark.anyio
async def test_stages_of_a_connection_and_the_limit_of_heads() -> None:
    release = asyncio.Event()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await release.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    config = uvicorn.Config(application, log_config=None, lifespan="off", ws="none")
    state, wire = ServerState(), _Wire()
    protocol = CoalescingProtocol(config=config, server_state=state, app_state={})
    protocol.connection_made(wire)

    def stage() -> Stage | None:
        found = protocol.stage()
        return None if found is None else found[0]

    assert stage() is Stage.HEAD
    protocol.data_received(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Le")
    assert stage() is Stage.HEAD
    protocol.data_received(b"ngth: 4\r\n\r\nab")
    assert protocol.stage() == (Stage.BODY, protocol.cycle, 2)
    protocol.pause_writing()
    protocol.resume_writing()
    protocol.data_received(b"cd")
    assert stage() is None, "the server is at work"
    release.set()
    await asyncio.gather(*state.tasks)
    assert stage() is None, "the connection is idle"
    protocol.data_received(b"GET / HTTP/1.1\r\n")
    assert stage() is Stage.HEAD
    filling = b"X-Filling: " + b"x" * 8_000 + b"\r\n"
    for _ in range(LARGEST_HEAD // len(filling)):
        protocol.data_received(filling)
    assert not wire.closed
    protocol.data_received(filling)
    assert wire.closed
    assert wire.written.endswith(b"connection: close\r\n\r\n")
    assert b"HTTP/1.1 431 " in wire.written
    protocol.connection_lost(None)


def _make_certificate(directory: Path) -> tuple[Path, Path]:
    cert, key = directory / "cert.pem", directory / "key.pem"
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(private, hashes.SHA256())
    )
    cert.write_bytes(made.public_bytes(Encoding.PEM))
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return cert, key


def test_tls_files_are_checked_before_the_start(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    cert, key = _make_certificate(tmp_path)
    assert load_tls(Settings(sqlite_path=place)) is None
    context = load_tls(Settings(sqlite_path=place, tls_cert=cert, tls_key=key))
    assert context is not None
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    for wrong in (
        {"tls_cert": cert},
        {"tls_key": key},
        {"tls_cert": cert, "tls_key": cert},
        {"tls_cert": tmp_path / "nothing", "tls_key": key},
    ):
        with pytest.raises(ConfigurationError):
            load_tls(Settings(sqlite_path=place, **wrong))


def test_origin_for_cors_must_be_an_origin() -> None:
    [setting] = [one for one in SETTINGS if one.name == "cors_origins"]
    given = ["https://example.org", "http://localhost:3000"]
    assert checked_value(setting, given, "it") == tuple(given)
    for wrong in ("*", "example.org", "https://example.org/", "https://*.example.org"):
        with pytest.raises(ConfigurationError, match="it must be a list of texts, each a scheme"):
            checked_value(setting, [wrong], "it")
        refused = run_cli("serve", "--cors-origin", wrong, check=False)
        assert refused.returncode != 0
        assert "`--cors-origins` must be" in refused.stderr
        assert wrong not in refused.stderr.replace("https://app.example", "")


@contextmanager
def _connected(server: ServerProcess, trusted: Path) -> Iterator[ssl.SSLSocket]:
    url = httpx.URL(server.url)
    context = ssl.create_default_context(cafile=trusted)
    plain = socket.create_connection((url.host, url.port or 0), timeout=START_LIMIT)
    with context.wrap_socket(plain, server_hostname=url.host) as connection:
        yield connection


def test_server_over_tls_closes_slow_clients_and_logs_requests(tmp_path: Path) -> None:
    """One process for all of it, because a start takes a while."""
    cert, key = _make_certificate(tmp_path)
    flags = ("--tls-cert", str(cert), "--tls-key", str(key), "--client-timeout", "0.5")
    with ServerProcess(tmp_path / "data", *flags, "--access-log", trusted=cert) as server:
        assert server.url.startswith("https://")
        with (
            _connected(server, cert) as silent,
            _connected(server, cert) as head,
            _connected(server, cert) as body,
        ):
            head.sendall(b"GET /health HTTP/1.1\r\nHost: ")
            body.sendall(
                b"POST /api/v1/memory HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n"
                b"X-API-Key: %s\r\n\r\n{" % server.dev_key.encode()
            )
            for connection in (silent, head, body):
                assert _is_closed(connection)
        with server.client() as client:
            assert client.get("/health", headers={"X-Request-ID": "mine"}).status_code == 200
        assert server.terminate() == 0
        lines = [json.loads(line) for line in server.read_errors().splitlines()]
    # The lines of the last requests are written when the server stops.
    (line,) = [line for line in lines if line.get("request_id") == "mine"]
    assert (line["operation"], line["status"], line["principal"]) == ("health", 200, None)


def _is_closed(connection: ssl.SSLSocket) -> bool:
    try:
        return connection.recv(1) == b""
    except (ConnectionError, ssl.SSLError):
        return True
