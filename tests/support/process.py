"""A memorywall server as its own process, as an operator runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import httpx

from memorywall.sdk.http import tls_context
from tests.support.backend import place_options
from tests.support.command_line import run_cli, run_process
from tests.support.programs import start_python

__all__ = ["START_LIMIT", "ServerProcess", "run_cli", "run_process"]

_ADDRESS = re.compile(r"at (https?://\S+)/docs")
START_LIMIT = 120.0


def open_client(
    url: str, headers: dict[str, str], *, timeout: float, trusted: Path | None = None
) -> httpx.Client:
    """An HTTP client that loads no certificate authorities, which takes 40 ms of a core.

    trusted: the certificate of a server over TLS
    """
    verify = tls_context(url) if trusted is None else ssl.create_default_context(cafile=trusted)
    return httpx.Client(
        base_url=url, headers=headers, timeout=timeout, verify=verify, trust_env=False
    )


def _processor_seconds(pid: int, begun: float) -> float:
    """Returns the processor seconds of a process; where the system does not show them, the seconds
    since `begun`."""
    try:
        figures = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return time.perf_counter() - begun
    return (int(figures[11]) + int(figures[12])) / os.sysconf("SC_CLK_TCK")


class ServerProcess:
    """`memorywall serve` on a data directory. A context manager that stops it at the end.

    url: its address
    started_in: the processor seconds until it answered /ready, which other programs on the machine
        hardly change
    place: the options with which a command opens its store
    trusted: the certificate of a server over TLS
    program: the module that is run, with arguments before those of the command
    """

    def __init__(
        self,
        data: Path,
        *arguments: str,
        dev: bool = True,
        trusted: Path | None = None,
        program: Sequence[str] = ("memorywall",),
    ) -> None:
        self.data = data
        self.trusted = trusted
        self.place = place_options(data)
        begun = time.perf_counter()
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it lives as long as this
        command = ["serve", *self.place, "--port", "0"]
        if dev:
            command.append("--dev")
        if "--access-log" not in arguments:
            # Tests read standard error for what went wrong.
            command.append("--no-access-log")
        self.process = start_python(
            "-m",
            *program,
            *command,
            *arguments,
            stdout=subprocess.PIPE,
            # To a file, for nobody reads a pipe while the server runs and a full one stops it.
            stderr=self.errors,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.url = self._read_address()
        self._wait_until_ready()
        self.started_in = _processor_seconds(self.process.pid, begun)

    def _read_address(self) -> str:
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if match := _ADDRESS.search(line):
                self.said = "".join(lines)
                return match[1]
        self.process.wait(timeout=10)
        raise AssertionError(f"the server did not start: {''.join(lines)}{self.read_errors()}")

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_LIMIT
        while time.monotonic() < deadline:
            try:
                if self.get("/ready", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.01)
        raise AssertionError("the server did not become ready")

    def read_errors(self) -> str:
        """All it has written to its standard error."""
        self.errors.seek(0)
        return self.errors.read()

    @property
    def dev_key(self) -> str:
        """The key that `--dev` made."""
        return (self.data / "dev-key").read_text().strip()

    def create_key(self, agent: str, *arguments: str, tenant: str = "default") -> str:
        """A key made with the command line, beside the running server."""
        printed = run_cli(
            "keys", "create", *self.place, "--tenant", tenant,
            "--agent", agent, "--json", *arguments,
        )  # fmt: skip
        key: str = json.loads(printed.stdout)["key"]
        return key

    def client(self, key: str | None = None, agent: str | None = None) -> httpx.Client:
        """An HTTP client with a key, by default the development key.

        All requests have one id, so that tests can compare whole replies.
        """
        headers = {"X-API-Key": key or self.dev_key, "X-Request-ID": "test"}
        if agent is not None:
            headers["X-Agent-ID"] = agent
        return open_client(self.url, headers, timeout=30, trusted=self.trusted)

    def get(self, path: str, *, timeout: float = 30) -> httpx.Response:
        """Gets a path without a key."""
        with open_client(self.url, {}, timeout=timeout, trusted=self.trusted) as client:
            return client.get(path)

    def kill(self) -> None:
        """SIGKILL: no chance to finish anything."""
        self.process.kill()
        self.process.communicate()

    def terminate(self) -> int:
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)
        return self.process.returncode

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        self.errors.close()
