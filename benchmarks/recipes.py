"""The three servers that are measured: ours, the ceiling, and the protocol's reference server."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.environments import ROOT, reference_command
from benchmarks.plan import HOST, Dialect
from benchmarks.servers import Recipe

REFERENCE_KEY = "benchmark-key"


def memorywall() -> Recipe:
    """The server this benchmark is about, as a user starts it."""

    def arguments(directory: Path, port: int) -> list[str]:
        data = str(directory / "data")
        serve = [sys.executable, "-m", "memorywall", "serve", "--data", data]
        return [*serve, "--port", str(port), "--dev"]

    return Recipe(
        name="memorywall",
        arguments=arguments,
        alive_path="/health",
        ready_path="/ready",
        api_key=lambda directory: (directory / "data" / "dev-key").read_text().strip(),
    )


def raw(canned: Path) -> Recipe:
    """The raw ASGI application, answering from the file `canned`."""

    def arguments(_: Path, port: int) -> list[str]:
        serve = [sys.executable, "-m", "benchmarks.raw"]
        return [*serve, "--canned", str(canned), "--port", str(port)]

    return Recipe(
        name="raw",
        arguments=arguments,
        alive_path="/health",
        ready_path="/health",
        # A key and a header of the usual length, since the parser has to read them.
        api_key=lambda _: "raw.0123456789abcdef0123456789abcdef0123456789abcdef",
        working_directory=ROOT,
    )


def reference(environment: Path) -> Recipe:
    """The reference server out of its own virtual environment.

    It runs with its default of one process and without an access log, which is in its favour.
    """

    def arguments(directory: Path, port: int) -> list[str]:
        command = [str(reference_command(environment)), "--host", HOST, "--port", str(port)]
        database = f"sqlite:///{directory / 'reference.db'}"
        quiet = ["--log-level", "warning"]
        return [*command, "--database-url", database, "--api-keys", REFERENCE_KEY, *quiet]

    return Recipe(
        name="reference",
        arguments=arguments,
        alive_path="/.well-known/openintent.json",
        ready_path="/.well-known/openintent.json",
        api_key=lambda _: REFERENCE_KEY,
        dialect=Dialect.REFERENCE,
    )
