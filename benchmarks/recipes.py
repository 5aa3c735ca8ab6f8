"""The servers that are measured: ours, the ceiling, and the protocol's reference server."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.environments import ROOT, reference_command
from benchmarks.plan import HOST, Dialect
from benchmarks.servers import Recipe
from memorywall.settings import DATABASE_NAME

REFERENCE_KEY = "benchmark-key"
KEY_FILE = f"{DATABASE_NAME}.key"


def memorywall(store: Callable[[], str] | None = None) -> Recipe:
    """The server this benchmark is about, as a user starts it.

    store: gives the URL of a database for every start; without it the data is in a file
    """

    def arguments(directory: Path, port: int) -> list[str]:
        return [*_serve(directory / "data", port, store() if store else None), "--dev"]

    return Recipe(
        name="memorywall",
        arguments=arguments,
        alive_path="/health",
        ready_path="/ready",
        api_key=lambda directory: _dev_key(directory).read_text().strip(),
    )


def another_memorywall(first: Path, store: str) -> Recipe:
    """One more server on the database of the server that runs in the directory `first`."""

    def arguments(directory: Path, port: int) -> list[str]:
        # Servers of one database share its key-encryption key.
        (directory / "data").mkdir()
        shutil.copy(first / "data" / KEY_FILE, directory / "data" / KEY_FILE)
        return _serve(directory / "data", port, store)

    return Recipe(
        name="another",
        arguments=arguments,
        alive_path="/health",
        ready_path="/ready",
        api_key=lambda _: _dev_key(first).read_text().strip(),
    )


def _serve(data: Path, port: int, store: str | None) -> list[str]:
    serve = [sys.executable, "-m", "memorywall", "serve", "--data", str(data), "--port", str(port)]
    return serve if store is None else [*serve, "--store", store]


def _dev_key(directory: Path) -> Path:
    return directory / "data" / "dev-key"


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
