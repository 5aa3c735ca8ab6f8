"""Clients that stop half-way, do not read, or hold connections: everyone else is served."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.raw import RawConnection
from tests.faults.support import assert_verified, resident_megabytes, wait_until
from tests.support.extent import extent
from tests.support.process import ServerProcess

_MEMORY = "/api/v1/memory"
_EVENTS = "/api/v1/agents/dev/events"
_SOON = extent(60.0, long=5.0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as running:
        yield running
        assert running.process.poll() is None, "the server has ended"
        with running.client() as client:
            _assert_responsive(client)
        assert_verified(tmp_path)


def _draft(key: str, size: int = 0) -> dict[str, Any]:
    return {
        "namespace": "n",
        "key": key,
        "value": {"filling": "x" * size},
        "memory_type": "working",
    }


def _fill(client: httpx.Client, batches: int, each: int, size: int) -> None:
    for batch in range(batches):
        elements = [_draft(f"{batch}.{number}", size) for number in range(each)]
        reply = client.post(f"{_MEMORY}/batch", json={"entries": elements})
        assert reply.status_code == 200, reply.text


def _assert_responsive(client: httpx.Client) -> None:
    """Reads and writes are answered soon, one after the other."""
    begun = time.monotonic()
    for _ in range(10):
        made = client.post(_MEMORY, json=_draft(f"at-{time.monotonic_ns()}"))
        assert made.status_code == 201, made.text
        assert client.get(made.headers["location"]).status_code == 200
    assert time.monotonic() - begun < _SOON


def _connections(process: int) -> int:
    """How many sockets a process holds."""
    count = 0
    for name in os.listdir(f"/proc/{process}/fd"):
        try:
            count += os.readlink(f"/proc/{process}/fd/{name}").startswith("socket:")
        except FileNotFoundError:
            continue
    return count


@contextmanager
def _opened(server: ServerProcess, number: int) -> Iterator[list[RawConnection]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(RawConnection(server.url, server.dev_key)) for _ in range(number)
        ]


def test_idle_connections_and_halves_of_requests(server: ServerProcess) -> None:
    process = server.process.pid
    with server.client() as client:
        _assert_responsive(client)
        before, memory = _connections(process), resident_megabytes(process)
        with _opened(server, 200) as idle, _opened(server, 60) as rude:
            whole = rude[0].request_bytes("POST", _MEMORY, _draft("half", 50_000))
            for number, connection in enumerate(rude):
                connection.send(whole[: (10, 150, 400, 30_000)[number % 4]])
            wait_until(
                lambda: _connections(process) >= before + len(idle) + len(rude),
                60,
                "all connections are open",
            )
            _assert_responsive(client)
            for number, connection in enumerate(rude):
                if number % 2:
                    # Cut off, not closed: the server gets a reset.
                    connection.socket.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                    )
                connection.close()
            wait_until(
                lambda: _connections(process) <= before + len(idle) + 1,
                60,
                "what the clients closed is closed here",
            )
            _assert_responsive(client)
        assert resident_megabytes(process) < memory + 40
        found = client.get(_MEMORY, params={"agent_id": "dev", "key": "half"})
        assert found.json()["total"] == 0, "half a request was carried out"


def test_replies_that_nobody_reads(server: ServerProcess) -> None:
    """Each client asks a hundred times for half a megabyte and reads nothing."""
    process = server.process.pid
    with server.client() as client:
        _fill(client, 1, 100, 5_000)
        page = f"{_MEMORY}?agent_id=dev&limit=100"
        assert len(client.get(page).content) > 500_000
        _assert_responsive(client)
        memory = resident_megabytes(process)
        with _opened(server, 20) as deaf:
            for connection in deaf:
                connection.send(connection.request_bytes("GET", page) * 100)
            for _ in range(3):
                _assert_responsive(client)
                # One reply for each of them, and not a hundred.
                assert resident_megabytes(process) < memory + 20 * 2 + 20
        _assert_responsive(client)


def test_an_export_that_nobody_reads(server: ServerProcess) -> None:
    """It is sent as fast as it is read and is not gathered in memory."""
    process = server.process.pid
    with server.client() as client:
        _fill(client, 7, 200, 60_000)
        _assert_responsive(client)
        # What the page cache takes is taken now.
        with client.stream("GET", f"{_MEMORY}/export?agent_id=dev") as whole:
            size = sum(len(piece) for piece in whole.iter_bytes())
        assert size > 80_000_000
        memory = resident_megabytes(process)
        with _opened(server, 3) as deaf:
            for connection in deaf:
                connection.send(connection.request_bytes("GET", f"{_MEMORY}/export?agent_id=dev"))
                begun = time.monotonic()
                assert client.get("/health").status_code == 200
                assert time.monotonic() - begun < _SOON
            for _ in range(3):
                _assert_responsive(client)
            # A page of 200 entries each, which is 12 MB, but not all the 84.
            assert resident_megabytes(process) < memory + 3 * 30


@pytest.mark.sampled(0)
def test_event_streams_that_are_cut_or_never_read(server: ServerProcess) -> None:
    process = server.process.pid
    with server.client() as client:
        _assert_responsive(client)
        before = _connections(process)
        with _opened(server, 50) as streams:
            for stream in streams:
                stream.send(stream.request_bytes("GET", _EVENTS, None, "accept: text/event-stream"))
            for stream in streams[:25]:
                stream.read_until(b"event: memory.created")
            memory = resident_megabytes(process)
            # The others never read: what they are to be told must not pile up.
            for batch in range(20):
                elements = [_draft(f"event-{batch}.{number}") for number in range(250)]
                made = client.post(f"{_MEMORY}/batch", json={"entries": elements})
                assert made.status_code == 200
            _assert_responsive(client)
            assert resident_megabytes(process) < memory + 80
        wait_until(
            lambda: _connections(process) <= before, 10, "the streams that were cut are closed"
        )
        for batch in range(5):
            elements = [_draft(f"later-{batch}.{number}") for number in range(250)]
            assert client.post(f"{_MEMORY}/batch", json={"entries": elements}).is_success
        _assert_idle(process)


def _assert_idle(process: int) -> None:
    """Nobody asks for anything, so next to nothing is done."""

    def used() -> float:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def idle_for_a_second() -> bool:
        begun = used()
        time.sleep(1.0)
        return used() - begun < 0.2

    wait_until(idle_for_a_second, 10, "the server is idle again")


def test_client_that_leaves_during_an_export_is_no_error(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        with server.client() as client:
            _fill(client, 5, 100, 500)
        for number in range(20):
            with RawConnection(server.url, server.dev_key) as connection:
                connection.send(connection.request_bytes("GET", f"{_MEMORY}/export"))
                connection.socket.recv(1 + number * 1_000)
        with server.client() as client:
            # Every client has left when the last export has ended.
            assert len(client.get(f"{_MEMORY}/export").text.splitlines()) == 500
        assert server.terminate() == 0
        assert server.read_errors() == ""
