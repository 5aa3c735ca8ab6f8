"""Puts a memorywall together: the only place that names a backend."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from memorywall.records.clock import Clock, SystemClock, instant_to_milliseconds
from memorywall.records.errors import ConfigurationError
from memorywall.records.identifiers import IdSource
from memorywall.records.principal import Permission, Principal, PrincipalKind
from memorywall.settings import DATABASE_NAME, DEFAULT_TENANT, KEY_ENVIRONMENT, Settings
from memorywall.storage.port import Inspection, Store, Transaction
from memorywall.storage.sqlite.inspection import SqliteInspection
from memorywall.storage.sqlite.store import SqliteStore
from memorywall.wall.administration import create_tenant
from memorywall.wall.door import Door
from memorywall.wall.keyring import speaking_for
from memorywall.wall.vault import KEY_BYTES, Vault


def settings_for(directory: Path, **given: Any) -> Settings:
    """The settings of a server or command that works on a data directory; `given` are others
    than the default ones, by name."""
    key = os.environ.get(KEY_ENVIRONMENT)
    return Settings(database=directory / DATABASE_NAME, key=key, **given)


@asynccontextmanager
async def open_memory(
    settings: Settings, *, exclusive: bool = True, clock: Clock | None = None
) -> AsyncIterator[Door]:
    """Opens the door to a store, and closes the store at the end.

    exclusive: be the one server of the store; see `SqliteStore.open`
    Raises StoreLockedError, and ConfigurationError where the database or its key is not usable.
    """
    clock = clock or SystemClock()
    ids = IdSource(clock)
    store = SqliteStore.open(
        settings.database, exclusive=exclusive, erase_within=settings.erase_within
    )
    try:
        key = load_key(settings, may_create=not await store.read(_has_sealed))
        door = Door(store=store, clock=clock, ids=ids, vault=Vault(key, ids), settings=settings)
        await store.read(door.vault.check)
        await _not_before_the_last_event(store, clock)
        await create_tenant(door, DEFAULT_TENANT)
        yield door
    finally:
        await store.close()


def open_inspection(settings: Settings) -> Inspection:
    """A snapshot of a store for `verify`, beside a running server too."""
    if not settings.database.exists():
        raise ConfigurationError(f"there is no database at {settings.database}")
    return SqliteInspection(settings.database)


def load_key(settings: Settings, *, may_create: bool) -> bytes:
    """The key-encryption key, from the settings or its file.

    A database that holds sealed values and whose key is gone is not opened: a new key could open
    none of them, and would hide the loss.
    """
    if settings.key is not None:
        return _decode_key(settings.key, KEY_ENVIRONMENT)
    path = settings.key_file
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        if not may_create:
            raise ConfigurationError(
                f"the key-encryption key {path} is missing; put it back or set {KEY_ENVIRONMENT}:"
                " without it what is sealed cannot be read"
            ) from None
        return _create_key(path)
    if mode & 0o077:
        raise ConfigurationError(f"{path} can be read by others; `chmod 600` it")
    return _decode_key(path.read_text(encoding="ascii", errors="replace"), str(path))


def _create_key(path: Path) -> bytes:
    """Makes the key, so that after a crash it is there whole or not at all: what is sealed under
    a key that is lost is lost with it."""
    key = secrets.token_bytes(KEY_BYTES)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(base64.b64encode(key) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        # Unlike a rename, a link does not replace a key that another process has just made.
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


async def _has_sealed(transaction: Transaction) -> bool:
    return await transaction.data_keys.any() is not None


async def _not_before_the_last_event(store: Store, clock: Clock) -> None:
    """The clock goes on from the last thing that happened, even when the machine's was set back."""

    async def script(transaction: Transaction) -> list[str]:
        latest = [
            await transaction.events.latest(tenant)
            for tenant in await transaction.identities.tenants()
        ]
        return [event.timestamp for event in latest if event is not None]

    for instant in await store.read(script):
        # One later: ids of that very millisecond were counted up from a place that is not known.
        clock.not_before(instant_to_milliseconds(instant) + 1)


class LocalAuthenticator:
    """For a store opened in this process: who can open the file needs no key.

    X-Agent-ID chooses the agent, as it does for a key that may act for others.
    """

    def __init__(self, tenant: str, agent: str) -> None:
        self._principal = Principal(
            tenant=tenant,
            id=agent,
            kind=PrincipalKind.AGENT,
            permissions=frozenset(Permission),
        )

    async def authenticate(self, key: str | None, agent: str | None) -> Principal:
        speaking = speaking_for(self._principal, agent)
        return replace(speaking, acting="")
