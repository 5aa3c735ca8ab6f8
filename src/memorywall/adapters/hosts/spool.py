"""The spool of a host: an append-only file of turns that are not in memory yet.

A hook accepts a turn when its line is on disk. Another process may read the lines, store them and
truncate the file; when it is killed between the two, the lines are stored again, which the client
ids of the turns make harmless.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from memorywall.records.errors import ConfigurationError
from memorywall.storage.durable_files import write_all

_MOST_BYTES = 64 * 2**20
_NEWLINE = b"\n"


class SpooledTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn that waits.

    said_at: an RFC 3339 instant
    session: the host's id of the conversation
    client_id: makes it harmless to store the turn twice
    role: user or assistant
    """

    said_at: str
    session: str
    client_id: str
    role: str
    text: str


class SpoolContent(NamedTuple):
    """The turns of a spool.

    size: that of the file with these turns, in bytes
    torn: the lines that were not complete when their process was killed
    """

    turns: list[SpooledTurn]
    size: int
    torn: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SpooledTurn).decode


class SpoolProgress:
    """How many turns of a spool are done with, in a file that only the process writes that stores
    them. The last of them is named, so that it says nothing about another spool."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, turns: Sequence[SpooledTurn]) -> int:
        """Returns how many of these turns are done with."""
        self._file.seek(0)
        number, _, client_id = self._file.read().decode().partition(" ")
        done = int(number) if number.isdigit() else 0
        is_of_these = 0 < done <= len(turns) and turns[done - 1].client_id == client_id
        return done if is_of_these else 0

    def write(self, turns: Sequence[SpooledTurn]) -> None:
        """Notes that these turns, from the first one on, are done with."""
        self._file.truncate(0)
        if turns:
            self._file.write(f"{len(turns)} {turns[-1].client_id}".encode())


class Spool:
    """The spool in a folder, which is created when a turn is appended."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "spool.jsonl"

    def append(self, turns: Iterable[SpooledTurn]) -> None:
        """Appends turns; they are on disk afterwards. Raises ConfigurationError if the spool has
        64 MiB."""
        content = b"".join(_encode(turn) + _NEWLINE for turn in turns)
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked() as file:
            size = os.fstat(file).st_size
            if size + len(content) > _MOST_BYTES:
                raise ConfigurationError(
                    f"{self._path} has 64 MiB of turns that wait for memory; nothing more is kept"
                    " until it can be reached"
                )
            if size and os.pread(file, 1, size - 1) != _NEWLINE:
                # The process that wrote the last line was killed within it.
                content = _NEWLINE + content
            write_all(file, content)
            os.fsync(file)

    def read(self) -> SpoolContent:
        """Returns the turns in the order in which they were appended."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return SpoolContent([], 0, 0)
        turns: list[SpooledTurn] = []
        torn = 0
        for line in content.split(_NEWLINE):
            try:
                turns += [_decode(line)] if line else []
            except ValueError:
                torn += 1
        return SpoolContent(turns, len(content), torn)

    def truncate(self, size: int) -> bool:
        """Empties the file if it still has this size. Returns whether it is empty."""
        with self._locked() as file:
            if os.fstat(file).st_size != size:
                return False
            os.ftruncate(file, 0)
            os.fsync(file)
            return True

    @contextmanager
    def draining(self) -> Iterator[SpoolProgress | None]:
        """Holds the right to store the turns; yields None if another process has it, and without
        a spool."""
        if not self._path.exists():
            yield None
            return
        path = self._path.with_suffix(".progress")
        with open(path, "ab+", buffering=0, opener=_private) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                yield SpoolProgress(file)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        with open(self._path, "ab+", buffering=0, opener=_private) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file.fileno()


def _private(path: str, flags: int) -> int:
    """Opens a file that only its user may read."""
    return os.open(path, flags, 0o600)
