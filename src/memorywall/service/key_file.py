"""The key-encryption key in its file or in the environment."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import stat
from pathlib import Path

from memorywall.records.errors import ConfigurationError
from memorywall.service.encryption import KEY_BYTES
from memorywall.settings import KEY_ENVIRONMENT, Settings


def load_key(settings: Settings, *, may_create: bool) -> bytes:
    """The key-encryption key, from the settings or its file.

    Raises ConfigurationError if the key of a database with sealed values is missing: a new key
    could open none of them, and would hide the loss.

    may_create: whether a missing key may be created
    """
    if settings.encryption_key is not None:
        return _decode_key(settings.encryption_key, KEY_ENVIRONMENT)
    path = settings.key_file
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        if not may_create:
            raise ConfigurationError(_missing_key(settings)) from None
        return _create_key(path)
    except OSError as error:
        raise ConfigurationError(f"the key {path} cannot be opened: {error.strerror}") from error
    if mode & 0o077:
        raise ConfigurationError(f"{path} can be read by others; `chmod 600` it")
    return _decode_key(path.read_text(encoding="ascii", errors="replace"), str(path))


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


def _create_key(path: Path) -> bytes:
    """Creates the key file atomically and durably, because a lost key loses all sealed data."""
    key = secrets.token_bytes(KEY_BYTES)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(base64.b64encode(key) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        # Unlike a rename, a link does not replace a key that another process has just created.
        os.link(draft, path)
    except FileExistsError:
        return _decode_key(path.read_text(encoding="ascii", errors="replace"), str(path))
    finally:
        draft.unlink()
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return key


def _decode_key(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigurationError(f"{where} must hold {KEY_BYTES} bytes in base64")
    return key
