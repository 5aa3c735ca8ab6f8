"""SIGTERM and SIGINT: what is under way is finished or cleanly refused, and nothing is lost."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from tests.faults.load import Load
from tests.faults.raw import RawConnection, RawReply
from tests.faults.support import acting_key, assert_verified, spawn
from tests.support.extent import extent
from tests.support.process import ServerProcess

_STOPS_WITHIN = extent(60.0, long=10.0)
_EVENTS = "/api/v1/agents/dev/events"


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.sampled(1)
def test_a_server_stops_under_load_and_keeps_what_it_answered(
    tmp_path: Path, name: signal.Signals
) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    data = tmp_path / "data"
    with ServerProcess(data) as server, ExitStack() as stack:
        load = Load(seed, acting_key(server), workers=4, clean_end=True)
        streams = [stack.enter_context(RawConnection(server.url, server.dev_key)) for _ in range(3)]
        for stream in streams:
            stream.send(stream.request_bytes("GET", _EVENTS, None, "accept: text/event-stream"))
        _let_an_event_through(server, streams)
        load.start(server.url)
        with _large_requests(server) as replies, _long_condition(server):
            time.sleep(1.0)
            begun = time.monotonic()
            server.process.send_signal(name)
            server.process.communicate(timeout=60)
            took = time.monotonic() - begun
        errors = server.read_errors()
        load.stop()
        endings = [stream.read_to_end() for stream in streams]
    assert server.process.returncode == 0, errors
    assert took < _STOPS_WITHIN
    assert "Traceback" not in errors
    assert any(reply.status == 200 for reply in replies)
    assert all(reply.whole for reply in replies), "a reply was cut in two"
    for ending in endings:
        assert ending.endswith(b"\n\n\r\n0\r\n\r\n") or ending == b"0\r\n\r\n", ending[-200:]
    assert_verified(data)
    with ServerProcess(data) as again:
        load.settle(again.url)
        with again.client() as client:
            page = client.get(
                "/api/v1/memory?memory_type=working&agent_id=dev&namespace=large&limit=1"
            )
        answered = sum(reply.status == 200 for reply in replies)
        unanswered = sum(reply.status == 0 for reply in replies)
        batches, rest = divmod(page.json()["total"], 40)
        assert rest == 0, "part of a batch is there"
        assert answered <= batches <= answered + unanswered


def _let_an_event_through(server: ServerProcess, streams: list[RawConnection]) -> None:
    """Every stream has shown something, so it is open in earnest."""
    with server.client() as client:
        made = client.post(
            "/api/v1/memory",
            json={"namespace": "n", "key": "seen", "value": {}, "memory_type": "working"},
        )
    assert made.status_code == 201
    for stream in streams:
        stream.read_until(b"event: memory.created")
        shown = stream.read_until(b"\n\n\r\n")
        assert made.json()["id"].encode() in shown


@contextmanager
def _large_requests(server: ServerProcess) -> Iterator[list[RawReply]]:
    """Batches with large replies, sent without pause by four clients until the server is gone."""
    replies: list[RawReply] = []
    url, key = server.url, server.dev_key

    def work(client: int) -> None:
        number = 0
        with RawConnection(url, key) as connection:
            while not replies or replies[-1].status in (200, 503):
                number += 1
                elements = [
                    {
                        "namespace": "large",
                        "key": f"{client}.{number}.{part}",
                        "value": {"filling": "x" * 3_000},
                        "memory_type": "working",
                    }
                    for part in range(40)
                ]
                request = connection.request_bytes(
                    "POST", "/api/v1/memory/batch", {"entries": elements}
                )
                try:
                    connection.send(request)
                except ConnectionError:
                    return
                reply = connection.read_reply()
                replies.append(reply)
                if not reply.status:
                    return

    threads = [Thread(target=work, args=(client,), daemon=True) for client in range(4)]
    for thread in threads:
        thread.start()
    yield replies
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a request was neither answered nor refused"


@contextmanager
def _long_condition(server: ServerProcess) -> Iterator[None]:
    """Evaluates conditions that take seconds, one after the other, until the server is gone."""
    where = " or ".join(f'value.l contains "{number}"' for number in range(6))
    query = f"agent_id=dev&memory_type=episodic&where={quote(where)}"
    elements = [
        {
            "namespace": "arrays",
            "key": f"{number}",
            "value": {"l": [1] * 15_000},
            "memory_type": "episodic",
        }
        for number in range(60)
    ]
    url, key = server.url, server.dev_key
    with server.client() as client:
        assert client.post("/api/v1/memory/batch", json={"entries": elements}).is_success

    def work() -> None:
        with RawConnection(url, key) as connection:
            while True:
                try:
                    connection.send(connection.request_bytes("GET", f"/api/v1/memory?{query}"))
                except ConnectionError:
                    return
                if connection.read_reply().status not in (200, 400):
                    return

    thread = Thread(target=work, daemon=True)
    thread.start()
    yield
    thread.join(60)
    assert not thread.is_alive(), "a query was neither answered nor refused"


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("after", [0.0, 0.001, 0.01, 0.1])
@pytest.mark.sampled(1)
def test_signal_soon_after_the_start_stops_the_server(
    tmp_path: Path, name: signal.Signals, after: float
) -> None:
    """From the line on that says it serves, whoever started it may ask it to stop."""
    process = spawn(tmp_path / "data")
    assert process.stdout is not None
    try:
        assert "serving" in process.stdout.readline()
        time.sleep(after)
        process.send_signal(name)
        assert process.wait(_STOPS_WITHIN) == 0
    finally:
        process.kill()
        process.communicate()


def test_clients_that_do_not_finish_do_not_keep_a_server_from_stopping(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server, ExitStack() as stack:
        idle, head, body, deaf = (
            stack.enter_context(RawConnection(server.url, server.dev_key)) for _ in range(4)
        )
        idle.send(idle.request_bytes("GET", "/health"))
        assert idle.read_reply().status == 200
        whole = body.request_bytes(
            "POST",
            "/api/v1/memory",
            {"namespace": "n", "key": "half", "value": {}, "memory_type": "working"},
        )
        head.send(whole[:30])
        body.send(whole[:-5])
        deaf.send(deaf.request_bytes("GET", _EVENTS, None, "accept: text/event-stream"))
        with server.client() as client:
            assert client.get("/health").status_code == 200
        begun = time.monotonic()
        # It waits ten seconds for requests it has begun to read, and then no longer.
        assert server.terminate() == 0
        assert time.monotonic() - begun < _STOPS_WITHIN + 5
