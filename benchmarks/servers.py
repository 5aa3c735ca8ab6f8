"""Starting the measured servers, each as its own process, and seeing that all of them end."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.plan import HOST, Dialect, Endpoint

START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
POLL_SECONDS = 0.002


class ServerError(Exception):
    """A server did not come up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """The start of one kind of server.

    arguments: the command, given a directory of its own and a port
    alive_path: answers 200 once the process answers at all
    ready_path: answers 200 once it can be used
    api_key: the key to speak with, known once the server is ready
    """

    name: str
    arguments: Callable[[Path, int], list[str]]
    alive_path: str
    ready_path: str
    api_key: Callable[[Path], str]
    dialect: Dialect = Dialect.MEMORYWALL
    working_directory: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """A running server."""

    recipe: Recipe
    process: subprocess.Popen[bytes]
    directory: Path
    port: int
    started_at: float

    def wait_for(self, path: str) -> float:
        """Poll until a GET answers 200; the seconds since the process was spawned."""
        while (elapsed := time.perf_counter() - self.started_at) < START_TIMEOUT:
            if self.process.poll() is not None:
                raise ServerError(self.complaint(f"ended with code {self.process.returncode}"))
            if _answers(self.port, path):
                return time.perf_counter() - self.started_at
            time.sleep(POLL_SECONDS)
        raise ServerError(self.complaint(f"no 200 for GET {path} in {elapsed:.0f} seconds"))

    def endpoint(self) -> Endpoint:
        """Returns the endpoint of the server; waits until it is ready."""
        self.wait_for(self.recipe.ready_path)
        try:
            key = self.recipe.api_key(self.directory)
        except OSError as error:
            raise ServerError(self.complaint(f"its key cannot be read ({error})")) from error
        return Endpoint(port=self.port, api_key=key, dialect=self.recipe.dialect)

    def stop(self) -> None:
        """End the process and every child it has."""
        for number, patience in ((signal.SIGTERM, STOP_TIMEOUT), (signal.SIGKILL, None)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                return

    def complaint(self, what: str) -> str:
        """A line that says what is wrong, with the end of what the server printed."""
        printed = _log(self.directory).read_text(errors="replace")[-1000:].strip()
        return f"{self.recipe.name}: {what}; it printed: {printed or 'nothing'}"


class Servers:
    """All servers of a run; leaving the context ends every one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: list[Server] = []
        self._started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # A second Ctrl-C here would leave processes behind.
        previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for server in self._running:
            server.stop()
        signal.signal(signal.SIGINT, previous)

    def start(self, recipe: Recipe) -> Server:
        """Spawn a server in a fresh directory, without waiting for it."""
        self._started += 1
        directory = self._directory / f"{recipe.name}-{self._started}"
        directory.mkdir()
        port = _free_port()
        arguments = recipe.arguments(directory, port)
        with _log(directory).open("wb") as log:
            started_at = time.perf_counter()
            process = subprocess.Popen(
                arguments,
                cwd=recipe.working_directory or directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A group of its own, so that workers it may have end with it.
                start_new_session=True,
            )
        server = Server(
            recipe=recipe, process=process, directory=directory, port=port, started_at=started_at
        )
        self._running.append(server)
        return server

    def fallen(self) -> list[str]:
        """Returns the output of the servers that ended by themselves."""
        ended = (server for server in self._running if server.process.poll() is not None)
        return [server.complaint("ended in the middle of the run") for server in ended]

    def stop(self, server: Server) -> None:
        """End one server early."""
        server.stop()
        self._running.remove(server)


def _log(directory: Path) -> Path:
    return directory / "server.log"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
