"""Measures creates of one tenant while another tenant has open streams of changes.

    python -m benchmarks.streams [--store postgresql://...] [--streams 100] [--seconds 5]

Starts a server. Each line has the creates of one tenant, one after the other over HTTP, in
milliseconds: without streams, beside the streams of another tenant that is idle, and beside streams
of another tenant that writes 20 times a second, which each stream delivers.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

_PAUSE = 0.05
_BODY = {"namespace": "n", "value": {"text": "x" * 200}, "memory_type": "semantic"}


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", help="PostgreSQL; default: a SQLite file in a new directory")
    parser.add_argument("--streams", type=int, default=100, help="of one tenant")
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        place = ["--data", room, *(["--store", asked.store] if asked.store else [])]
        with _server(place) as address:
            measure = _Measurement(address, place, asked.seconds)
            measure.creates("no streams")
            with _streams(address, measure.readers, asked.streams) as count:
                measure.creates(f"{asked.streams} streams, idle")
                with _repeated(measure.write):
                    before, begun = count(), time.perf_counter()
                    measure.creates(f"{asked.streams} streams, 20 writes a second")
                    rate = (count() - before) / (time.perf_counter() - begun)
                print(f"delivered {rate:,.0f} events a second")


class _Measurement:
    """The callers: one tenant creates, and another one follows its changes and writes.

    readers: the keys of the streams, each of a principal of its own
    """

    def __init__(self, address: tuple[str, int], place: list[str], seconds: float) -> None:
        self._seconds = seconds
        self._creator = _Caller(address, _key(place, "measured", "one"))
        self._writer = _Caller(address, _key(place, "followed", "writer"))
        self.readers = [_key(place, "followed", f"reader-{number}") for number in range(10)]

    def write(self) -> None:
        """Writes once as the tenant with streams."""
        self._writer.create()

    def creates(self, label: str) -> None:
        """Measures creates, and prints a line."""
        self._creator.create()
        taken = []
        end = time.perf_counter() + self._seconds
        while (begun := time.perf_counter()) < end:
            self._creator.create()
            taken.append((time.perf_counter() - begun) * 1000)
        spread = statistics.quantiles(taken, n=100)
        print(
            f"{label:<40} median {statistics.median(taken):6.2f}  p99 {spread[98]:7.2f}"
            f"  worst {max(taken):7.2f}",
            flush=True,
        )


class _Caller:
    """A connection with a key."""

    def __init__(self, address: tuple[str, int], key: str) -> None:
        self._connection = http.client.HTTPConnection(*address)
        self._headers = {"X-API-Key": key, "Content-Type": "application/json"}
        self._number = 0

    def create(self) -> None:
        """Creates an entry."""
        self._number += 1
        body = json.dumps({**_BODY, "key": str(self._number)})
        self._connection.request("POST", "/api/v1/memory", body, self._headers)
        reply = self._connection.getresponse()
        text = reply.read()
        if reply.status != 201:
            raise SystemExit(text.decode())


@contextmanager
def _server(place: list[str]) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "memorywall", "serve", *place, "--port", "0"]
    options = ["--no-access-log", "--principal-streams", "1000", "--tenant-streams", "1000"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"at (http://\S+)/docs", line):
                parts = urlsplit(found[1])
                break
        else:
            raise SystemExit("the server did not start")
        try:
            yield str(parts.hostname), int(parts.port or 0)
        finally:
            process.terminate()


def _key(place: list[str], tenant: str, agent: str) -> str:
    for words in (["tenants", "create", tenant], ["keys", "create", "--tenant", tenant]):
        more = ["--agent", agent] if words[0] == "keys" else []
        command = [sys.executable, "-m", "memorywall", *words, *more, *place]
        printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return printed.stdout.decode().strip()


@contextmanager
def _streams(address: tuple[str, int], keys: list[str], number: int) -> Iterator[Callable[[], int]]:
    """Opens streams and reads them in a thread; yields the number of events so far."""
    found, is_over = 0, threading.Event()
    sockets = [socket.create_connection(address) for _ in range(number)]
    with selectors.DefaultSelector() as selector:
        for place, one in enumerate(sockets):
            key = keys[place % len(keys)]
            one.sendall(
                f"GET /api/v1/memory/changes HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n"
                "Accept: text/event-stream\r\n\r\n".encode()
            )
            one.recv(65536)
            selector.register(one, selectors.EVENT_READ)

        def read() -> None:
            nonlocal found
            while not is_over.is_set():
                for ready, _ in selector.select(0.2):
                    found += ready.fileobj.recv(65536).count(b"event: memory.")  # type: ignore[union-attr]

        thread = threading.Thread(target=read)
        thread.start()
        try:
            yield lambda: found
        finally:
            is_over.set()
            thread.join()
            for one in sockets:
                one.close()


@contextmanager
def _repeated(work: Callable[[], None]) -> Iterator[None]:
    """Does something in a thread, again and again with a pause."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(_PAUSE):
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


if __name__ == "__main__":
    main()
