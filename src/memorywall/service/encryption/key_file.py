"""The key-encryption keys in a file or in the environment.

A key file has one key in base64 on each line, from the oldest to the newest. It has several only
while a new key replaces an old one.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memorywall.records.errors import ConfigurationError
from memorywall.service.encryption.master_keys import KEY_BYTES, MasterKeys
from memorywall.settings import KEY_ENVIRONMENT, Settings
from memorywall.storage.durable_files import replace_durably, sync_directory, write_durably

_Stamp = tuple[int, int, int]


def load_keys(settings: Settings, *, may_create: bool) -> MasterKeys:
    """The key-encryption keys, from the settings or their file.

    Raises ConfigurationError if the key of a database with sealed values is missing: a new key
    could open none of them, and would hide the loss.

    may_create: whether a missing key may be created
    """
    if settings.encryption_key is not None:
        return MasterKeys(decode_keys(settings.encryption_key, KEY_ENVIRONMENT))
    path = settings.key_file
    stamp: _Stamp | None
    try:
        stamp = _stamp(path)
        keys = read_key_file(path)
    except FileNotFoundError:
        if not may_create:
            raise ConfigurationError(_missing_key(settings)) from None
        keys, stamp = _create_key(path), None

    def reload() -> Sequence[bytes] | None:
        nonlocal stamp
        try:
            present = _stamp(path)
            if present == stamp:
                return None
            changed = read_key_file(path)
        except (OSError, ConfigurationError):
            # The known keys remain usable while the file is being replaced.
            return None
        stamp = present
        return changed

    return MasterKeys(keys, reload)


def has_keys(settings: Settings) -> bool:
    """Returns whether the settings or their file have key-encryption keys."""
    return settings.encryption_key is not None or settings.key_file.exists()


def read_keys(settings: Settings) -> tuple[bytes, ...]:
    """The key-encryption keys themselves, from the settings or their file. Raises
    ConfigurationError if there are none."""
    if settings.encryption_key is not None:
        return decode_keys(settings.encryption_key, KEY_ENVIRONMENT)
    try:
        return read_key_file(settings.key_file)
    except FileNotFoundError:
        raise ConfigurationError(_missing_key(settings)) from None


def write_key_file(path: Path, keys: Sequence[bytes]) -> None:
    """Replaces the keys in a file durably, or creates the file. Raises ConfigurationError."""
    with _opening(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, keys)


def add_older_keys(keys: Sequence[bytes], older: Sequence[bytes]) -> tuple[bytes, ...]:
    """All keys, from the oldest to the newest. The order of `older` is kept if it has them all."""
    if set(keys) <= set(older):
        return tuple(older)
    return (*(key for key in older if key not in keys), *keys)


def read_key_file(path: Path) -> tuple[bytes, ...]:
    """The keys in a file. Raises FileNotFoundError, and ConfigurationError for a file that is
    unusable or that others can read."""
    with _opening(path):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            raise ConfigurationError(f"{path} can be read by others; `chmod 600` it")
        text = path.read_text(encoding="ascii", errors="replace")
    return decode_keys(text, str(path))


def begin_rotation(settings: Settings, new_key_file: Path | None) -> None:
    """Makes a new key the newest key, durably; does nothing if a rotation has begun already.

    new_key_file: a file with the new key; None for a random key, the default

    Raises ConfigurationError.
    """
    if settings.encryption_key is not None:
        if new_key_file is not None or len(decode_keys(settings.encryption_key, "")) < 2:
            raise ConfigurationError(
                f"set {KEY_ENVIRONMENT} to the old key and the new key, separated by a space, for"
                " this command and for every server"
            )
        return
    path = settings.key_file
    keys, new = read_key_file(path), None
    if new_key_file is not None:
        try:
            (new,) = read_key_file(new_key_file)
        except (FileNotFoundError, ValueError):
            raise ConfigurationError(f"{new_key_file} must hold one key") from None
    if len(keys) > 1:
        if new not in (None, keys[-1]):
            raise ConfigurationError(
                "a rotation to another key has begun; complete it, and drop the old key with"
                " `memorywall keys rotate-master --retire`"
            )
        return
    if new in keys:
        raise ConfigurationError("the new key is the present key")
    _replace(path, (*keys, new or secrets.token_bytes(KEY_BYTES)))


def retire_old_keys(settings: Settings) -> int:
    """Removes all keys but the newest from the key file; returns the number of removed keys. The
    caller must check that nothing is wrapped under them. Raises ConfigurationError."""
    if settings.encryption_key is not None:
        raise ConfigurationError(f"remove the old key from {KEY_ENVIRONMENT} of every server")
    keys = read_key_file(settings.key_file)
    if len(keys) > 1:
        _replace(settings.key_file, keys[-1:])
    return len(keys) - 1


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    """Raises FileNotFoundError for a missing key, and ConfigurationError for any other failure of
    the operating system."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigurationError(f"the key {path} cannot be opened: {error.strerror}") from error


def _stamp(path: Path) -> _Stamp:
    """Differs after each replacement of a file. Raises as _opening does."""
    with _opening(path):
        found = path.stat()
    return found.st_mtime_ns, found.st_ino, found.st_size


def _missing_key(settings: Settings) -> str:
    """The message about a missing key. A server on PostgreSQL keeps the key in its data directory,
    which a command with the URL of the database alone does not know."""
    path = settings.key_file
    where = "put it back"
    if settings.database_url is not None:
        where = f"give the directory that holds {path.name} as --data"
    return (
        f"the key-encryption key {path} is missing; {where} or set {KEY_ENVIRONMENT}:"
        " without it what is sealed cannot be read"
    )


def _create_key(path: Path) -> tuple[bytes, ...]:
    """Creates the key file atomically and durably, because a lost key loses all sealed data.
    Raises ConfigurationError if its directory cannot be created."""
    key = secrets.token_bytes(KEY_BYTES)
    with _opening(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = _draft_of(path)
    write_durably(draft, encode_keys((key,)))
    try:
        # Unlike a rename, a link does not replace a key that another process has just created.
        os.link(draft, path)
    except FileExistsError:
        return decode_keys(path.read_text(encoding="ascii", errors="replace"), str(path))
    finally:
        draft.unlink()
    sync_directory(path.parent)
    return (key,)


def _replace(path: Path, keys: Sequence[bytes]) -> None:
    """Replaces the key file atomically and durably."""
    replace_durably(path, _draft_of(path), encode_keys(keys))


def _draft_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}")


def encode_keys(keys: Sequence[bytes]) -> bytes:
    """The content of a key file."""
    return b"".join(base64.b64encode(key) + b"\n" for key in keys)


def decode_keys(text: str, where: str) -> tuple[bytes, ...]:
    """The keys in a text, separated by white space. Raises ConfigurationError."""
    try:
        keys = tuple(base64.b64decode(part, validate=True) for part in text.split())
    except (binascii.Error, ValueError):
        keys = ()
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        raise ConfigurationError(f"{where} must hold {KEY_BYTES} bytes in base64")
    return keys
