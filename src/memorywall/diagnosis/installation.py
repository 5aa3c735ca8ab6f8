"""Checks of the machine: Python, packages, the data directory, the key file, the disk."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from memorywall.configuration.reader import Configuration
from memorywall.diagnosis.finding import Finding, ok, problem, warning
from memorywall.recall.embedders.packages import NEEDED
from memorywall.records.errors import ConfigurationError
from memorywall.service.encryption.key_file import load_keys
from memorywall.settings import Settings

_OLDEST_PYTHON = (3, 11)
_OLDEST_APSW = (3, 50)
_LITTLE_SPACE = 1 << 30
_NO_SPACE = 100 << 20
_EXTRAS = {
    "postgres": ("asyncpg",),
    "static": NEEDED["static"][1],
    "local": NEEDED["local"][1],
    "mcp": ("mcp",),
    "jwt": ("jwt",),
    "schemas": ("jsonschema_rs",),
    "langgraph": ("langgraph",),
    "openai-agents": ("agents",),
    "anthropic": ("anthropic",),
}


def check_python() -> Iterator[Finding]:
    """Yields the versions of Python and of the library with SQLite."""
    is_old = sys.version_info[:2] < _OLDEST_PYTHON
    found = problem if is_old else ok
    yield found("python", f"Python {platform.python_version()}, {platform.system()}")
    try:
        library = version("apsw")
    except PackageNotFoundError:
        yield problem("sqlite", "the package apsw is missing", "pip install apsw")
        return
    if tuple(map(int, library.split(".")[:2])) < _OLDEST_APSW:
        yield problem("sqlite", f"apsw {library} is older than 3.50", "pip install --upgrade apsw")
    else:
        yield ok("sqlite", f"SQLite of apsw {library}")


def check_extras(settings: Settings) -> Iterator[Finding]:
    """Yields the installed extras, and what the settings need beyond them."""
    have = [name for name, needed in _EXTRAS.items() if not _missing(needed)]
    yield ok("extras", ", ".join(have) if have else "none installed, and none is required")
    if settings.database_url is not None and _missing(_EXTRAS["postgres"]):
        yield problem(
            "extras",
            "the driver of PostgreSQL is missing",
            "pip install '.[postgres]' in a clone of memorywall",
        )
    install, needed = NEEDED.get(settings.embedder.partition(":")[0], ("", ()))
    if missing := _missing(needed):
        yield problem(
            "extras",
            f"the embedder needs {' and '.join(missing)}",
            f"pip install '.[{install}]' in a clone of memorywall",
        )


def _missing(modules: tuple[str, ...]) -> list[str]:
    return [name for name in modules if find_spec(name) is None]


def check_directory(settings: Settings) -> Iterator[Finding]:
    """Yields the permissions of the data directory and of its files."""
    directory = settings.sqlite_path.parent
    if not directory.is_dir():
        if settings.database_url is None:
            yield problem("directory", f"{directory} is missing", "run `memorywall init`")
        else:
            yield ok("directory", f"{directory} is missing; PostgreSQL has the data")
        return
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        yield problem(
            "directory",
            f"this user cannot read and write {directory}",
            "run memorywall as its owner, or change the owner",
        )
        return
    if _mode(directory) & 0o022:
        yield problem(
            "directory", f"other users can replace files in {directory}", "`chmod go-w` it"
        )
    else:
        yield ok("directory", f"{directory} is writable for this user only")
    # The server refuses a wide mode of the key file, so that is a finding of the key.
    readable = [
        file.name
        for file in sorted(directory.glob(settings.sqlite_path.name + "*"))
        if file != settings.key_file and _mode(file) & 0o077
    ]
    if readable:
        yield problem(
            "directory", f"other users can read {', '.join(readable)}", "`chmod 600` these files"
        )
    if (directory / "dev-key").exists():
        yield warning(
            "directory",
            "there is a development key with every permission",
            "start the server without --dev in production; that revokes the key",
        )


def check_key_file(settings: Settings) -> Iterator[Finding]:
    """Yields whether the key-encryption key can be read."""
    where = str(settings.key_file) if settings.encryption_key is None else "set in the settings"
    try:
        load_keys(settings, may_create=False)
    except ConfigurationError as error:
        if settings.encryption_key is None and not settings.key_file.exists():
            yield warning(
                "key",
                f"{settings.key_file} is missing",
                "put it back if the store has sealed values; otherwise the first start creates it",
            )
        else:
            yield problem("key", error.detail)
    else:
        yield ok("key", f"the key-encryption key is there: {where}")


def check_disk(settings: Settings) -> Iterator[Finding]:
    """Yields the free space on the disk of the data directory."""
    place = _existing(settings.sqlite_path.parent)
    free = shutil.disk_usage(place).free
    text = f"{free / (1 << 30):,.1f} GB are free"
    if free < _NO_SPACE:
        yield problem("disk", text, "free space now: writes fail with 507 when the disk is full")
    elif free < _LITTLE_SPACE:
        yield warning("disk", text, "free space soon: writes fail with 507 when the disk is full")
    else:
        yield ok("disk", text)


def check_settings(configuration: Configuration) -> Iterator[Finding]:
    """Yields where the settings come from."""
    given = [name for name in configuration.values if configuration.is_given(name)]
    words = f"{len(given)} of {len(configuration.values)} are given"
    file = f", file {configuration.file}" if configuration.file else ", no settings file"
    yield ok("settings", words + file)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _existing(path: Path) -> Path:
    """The path, or the closest parent that exists."""
    for one in (path, *path.absolute().parents):
        if one.exists():
            return one
    return Path("/")
