"""The suppression ledger: an append-only file of keyed digests, in a directory of its own.

    suppressed   a line with the format and a random seed, then one line for each suppression
    head         the position after the last acknowledged line, replaced by a rename
    key          the wrapped secret that the keys of the lines derive from, replaced by a rename
    lock         locked while a process appends

A line is on disk before the head names it, and the head is on disk before `append` returns. After
a kill, bytes behind the head are complete lines, which count, or the beginning of one, which the
next `append` removes. Fewer bytes than the head names show that lines were cut off.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from memorywall.records.feature_errors import LedgerDamagedError
from memorywall.records.suppression import (
    LedgerKey,
    LedgerPosition,
    SuppressionLine,
    encode_line,
    read_line,
)
from memorywall.storage.durable_files import replace_durably, sync_directory, write_all

_HEADER = re.compile(rb"memorywall suppression ledger 1 ([0-9a-f]{64})\n")
_USE_COPY = "put back a copy of the ledger that is not damaged"

OpenKey = Callable[[bytes | None], tuple[LedgerKey, bytes]]
"""Returns the keys for a content of the file `key`, and the content that it should have; creates a
key for None. Raises LedgerDamagedError and ConfigurationError."""


@dataclass(frozen=True, slots=True)
class LedgerContent:
    """The checked content of a ledger.

    macs: the seed, then the MAC of each line
    """

    lines: tuple[SuppressionLine, ...]
    macs: tuple[str, ...]

    def is_at(self, position: LedgerPosition) -> bool:
        """Returns whether the ledger contains this position."""
        return position.lines < len(self.macs) and self.macs[position.lines] == position.mac

    def merge(self, other: LedgerContent, here: Path, there: Path) -> LedgerContent:
        """Returns the longer of two ledgers, of which one is the beginning of the other.

        here, there: their directories
        Raises LedgerDamagedError if each has lines that the other lacks.
        """
        shorter, longer = sorted((self, other), key=lambda one: len(one.macs))
        if longer.macs[: len(shorter.macs)] != shorter.macs:
            raise LedgerDamagedError(
                f"the suppression ledgers in {here} and {there} differ; move the one away that does"
                " not belong to this store"
            )
        return longer


class SuppressionLedger:
    """The ledger in a directory, which any number of processes may use at once.

    open_key: opens the keys of its lines
    """

    def __init__(self, directory: Path, open_key: OpenKey) -> None:
        self.directory = directory
        self._open_key = open_key
        self._key: LedgerKey | None = None

    @property
    def key(self) -> LedgerKey:
        """The keys of the lines, which are created for a ledger without lines.

        Raises LedgerDamagedError, ConfigurationError if a key-encryption key is missing, and
        OSError if the files cannot be written.
        """
        return self._find_key() or self._store_key()

    @property
    def opened_key(self) -> LedgerKey | None:
        """The keys of the lines if this process has opened them already; None otherwise."""
        return self._key

    def renew_key(self) -> None:
        """Opens the keys of an existing ledger, and wraps them anew if their wrapping is not the
        one that `open_key` gives. Raises the errors of `key`."""
        content = read_key(self.directory)
        if content is not None:
            self._key, wrapped = self._open_key(content)
            if wrapped != content:
                self._store_key()

    def _find_key(self) -> LedgerKey | None:
        """Returns the keys of the lines, None for a ledger that has neither key nor lines."""
        if self._key is None:
            content = read_key(self.directory)
            if content is None and _has_lines(self.directory):
                # Another process may have created the ledger meanwhile: its key before its lines.
                content = read_key(self.directory)
                if content is None:
                    raise ledger_damaged(self.directory, "its key is missing")
            if content is not None:
                self._key, _ = self._open_key(content)
        return self._key

    def _store_key(self) -> LedgerKey:
        """Creates the keys, or wraps them anew."""
        with _locked(self.directory):
            content = read_key(self.directory)
            if content is None and _has_lines(self.directory):
                raise ledger_damaged(self.directory, "its key is missing")
            self._key, wrapped = self._open_key(content)
            if wrapped != content:
                _replace(self.directory / "key", wrapped)
            return self._key

    def append(self, lines: Sequence[SuppressionLine]) -> LedgerPosition:
        """Appends lines, and returns the position after them when they are on disk.

        Creates a missing ledger. Raises the errors of `key`.
        """
        key = self.key
        with _locked(self.directory):
            position = _create(self.directory)
            with _file(self.directory).open("r+b") as file:
                position = self._repair(file.fileno(), position)
                for line in lines:
                    text, mac = encode_line(line, key, position.mac)
                    write_all(file.fileno(), text)
                    position = _after(position, len(text), mac)
                os.fsync(file.fileno())
            _replace(self.directory / "head", msgspec.json.encode(position))
            return position

    def read(self) -> LedgerContent:
        """Returns the checked content, and changes nothing. Raises LedgerDamagedError, and
        ConfigurationError if a key-encryption key is missing."""
        head = read_position(self.directory)
        text = _file(self.directory).read_bytes() if _file(self.directory).exists() else b""
        header = _HEADER.match(text)
        if header is None:
            raise ledger_damaged(self.directory, "its first line is missing or changed")
        first = LedgerPosition(lines=0, size=header.end(), mac=header[1].decode())
        macs, lines = [first.mac], []
        for line, after in self._follow(text, first, head.size):
            lines.append(line)
            macs.append(after.mac)
        content = LedgerContent(tuple(lines), tuple(macs))
        if not content.is_at(head):
            raise ledger_damaged(
                self.directory, "lines at its end are missing, or its head is changed"
            )
        return content

    def adopt(self, other: SuppressionLedger) -> None:
        """Makes this ledger a copy of another one, unless it contains that one already.

        Raises LedgerDamagedError if each of the two has lines that the other lacks.
        """
        # A line that is appended meanwhile may be behind the head and never missing.
        head, key = (other.directory / "head").read_bytes(), read_key(other.directory)
        text, theirs = _file(other.directory).read_bytes(), other.read()
        with _locked(self.directory):
            if ledger_exists(self.directory):
                ours = self.read()
                merged = ours.merge(theirs, self.directory, other.directory)
                if merged.macs == ours.macs and (key is None or read_key(self.directory)):
                    return
            if key is not None:
                _replace(self.directory / "key", key)
            _replace(_file(self.directory), text)
            _replace(self.directory / "head", head)
            self._key = None

    def _repair(self, file: int, position: LedgerPosition) -> LedgerPosition:
        """Counts the complete lines behind the head, and removes the beginning of another one."""
        if os.fstat(file).st_size < position.size:
            raise ledger_damaged(self.directory, "lines at its end are missing")
        os.lseek(file, position.size, os.SEEK_SET)
        text = os.read(file, os.fstat(file).st_size - position.size)
        start = position.size
        behind = [after for _, after in self._follow(text, position, start, start)]
        position = behind[-1] if behind else position
        os.ftruncate(file, position.size)
        os.lseek(file, position.size, os.SEEK_SET)
        return position

    def _follow(
        self, text: bytes, position: LedgerPosition, acknowledged: int, start: int = 0
    ) -> Iterator[tuple[SuppressionLine, LedgerPosition]]:
        """Yields the lines after a position, each with the position after it.

        text: the bytes of the file from `start` on
        acknowledged: the number of bytes of the file that must be complete lines
        """
        key = self._find_key()
        while key is not None and position.size - start < len(text):
            end = text.find(b"\n", position.size - start)
            found = None if end < 0 else read_line(text[position.size - start : end])
            if found is not None and found[2].key != key.id:
                raise LedgerDamagedError(
                    f"the suppression ledger in {self.directory} was written with another"
                    f" key, or is changed; {_USE_COPY}"
                )
            if found is None or found[0] != key.mac(position.mac, found[1]):
                if position.size < acknowledged:
                    raise ledger_damaged(self.directory, f"line {position.lines + 1} is changed")
                return
            position = _after(position, end + 1 - (position.size - start), found[0])
            yield found[2], position


def ledger_exists(directory: Path) -> bool:
    """Returns whether there is a ledger in a directory."""
    return (directory / "head").exists() or _file(directory).exists()


def read_key(directory: Path) -> bytes | None:
    """Returns the content of the file `key`; None if there is none."""
    try:
        return (directory / "key").read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_position(directory: Path) -> LedgerPosition:
    """Returns the position after the last acknowledged line; it needs no key.

    Raises LedgerDamagedError.
    """
    try:
        return msgspec.json.decode((directory / "head").read_bytes(), type=LedgerPosition)
    except FileNotFoundError:
        raise ledger_damaged(directory, "its head is missing") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ledger_damaged(directory, "its head is changed") from None


def ensure_ledger(directory: Path) -> LedgerPosition:
    """Creates a ledger without lines if there is none, and returns the position of its end.

    Raises LedgerDamagedError, and OSError if the files cannot be written.
    """
    with _locked(directory):
        return _create(directory)


def _create(directory: Path) -> LedgerPosition:
    file, head = _file(directory), directory / "head"
    if not head.exists():
        if file.exists() and file.stat().st_size:
            # A kill between the two renames leaves a ledger without lines.
            header = _HEADER.fullmatch(file.read_bytes())
            if header is None:
                raise ledger_damaged(directory, "its head is missing")
            seed = header[1].decode()
        else:
            seed = secrets.token_hex(32)
        text = b"memorywall suppression ledger 1 %s\n" % seed.encode()
        _replace(file, text)
        _replace(head, msgspec.json.encode(LedgerPosition(lines=0, size=len(text), mac=seed)))
    elif not file.exists():
        raise ledger_damaged(directory, "its lines are missing")
    return read_position(directory)


def _has_lines(directory: Path) -> bool:
    """Returns whether a ledger has complete lines, which only its own key checks."""
    file = _file(directory)
    return file.exists() and file.read_bytes().count(b"\n") > 1


def _file(directory: Path) -> Path:
    return directory / "suppressed"


def _after(position: LedgerPosition, size: int, mac: str) -> LedgerPosition:
    return LedgerPosition(lines=position.lines + 1, size=position.size + size, mac=mac)


def ledger_damaged(directory: Path, why: str) -> LedgerDamagedError:
    """Returns the error for a ledger that is damaged.

    why: what is wrong
    """
    return LedgerDamagedError(
        f"the suppression ledger in {directory} is damaged: {why}; {_USE_COPY}"
    )


def _replace(file: Path, content: bytes) -> None:
    replace_durably(file, file.with_name(file.name + ".new"), content)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Holds the lock of a ledger, whose directory is created with mode 0700 if it is missing."""
    if not directory.exists():
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_directory(directory.parent)
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
