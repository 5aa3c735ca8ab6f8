"""Small files that are on disk when a function returns, and never half-written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

_ROOM: Final = 1024 * 1024
"""The bytes that a store must have room for."""


def replace_durably(path: Path, draft: Path, content: bytes) -> None:
    """Gives a file a new content, all at once.

    draft: a path in the same directory for the content before it replaces the file
    """
    write_durably(draft, content)
    draft.replace(path)
    sync_directory(path.parent)


def write_durably(path: Path, content: bytes) -> None:
    """Writes a file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Writes all of a content, which one call of the system may write a part of."""
    while content:
        content = content[os.write(descriptor, content) :]


def check_room(directory: Path) -> None:
    """Writes a file without a name, which nothing leaves behind. Raises OSError if a disk is full
    or refuses to write."""
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        write_all(file.fileno(), bytes(_ROOM))
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Returns when the names in a directory are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
