"""Puts a memorywall together: the only place that names a backend."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import secrets
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memorywall.recall.embedders import open_embedder
from memorywall.recall.index import Index
from memorywall.recall.weights import DEFAULT_WEIGHTS, Weights
from memorywall.records.clock import Clock, SystemClock, instant_to_milliseconds
from memorywall.records.errors import ConfigurationError, KeyUnavailableError
from memorywall.records.event import Event
from memorywall.records.identifiers import IdSource
from memorywall.records.principal import Permission, Principal, PrincipalKind
from memorywall.settings import (
    DATABASE_NAME,
    DEFAULT_TENANT,
    EMBEDDER_ENVIRONMENT,
    EMBEDDER_KEY_ENVIRONMENT,
    KEY_ENVIRONMENT,
    STORE_ENVIRONMENT,
    Settings,
)
from memorywall.storage.port import REGISTRY, Inspection, Store, Transaction
from memorywall.storage.sqlite.backup import SqliteBackup
from memorywall.storage.sqlite.backup import open_backup as read_backup
from memorywall.storage.sqlite.inspection import SqliteInspection
from memorywall.storage.sqlite.store import SqliteStore
from memorywall.storage.sqlite.transfer import SqliteOrigin, SqliteTarget
from memorywall.storage.transfer import Origin, Target
from memorywall.wall.administration import create_tenant
from memorywall.wall.door import Door
from memorywall.wall.keyring import speaking_for
from memorywall.wall.vault import KEY_BYTES, Vault


def settings_for(directory: Path, **given: Any) -> Settings:
    """The settings of a server or command that works on a data directory, or with its key on the
    PostgreSQL database that `store` or the environment names; `given` are others than the default
    ones, by name."""
    key = os.environ.get(KEY_ENVIRONMENT)
    given.setdefault("store", os.environ.get(STORE_ENVIRONMENT) or None)
    given.setdefault("embedder", os.environ.get(EMBEDDER_ENVIRONMENT) or "none")
    given.setdefault("embedder_key", os.environ.get(EMBEDDER_KEY_ENVIRONMENT) or None)
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
    store = await open_store(settings, exclusive=exclusive)
    try:
        key = load_key(settings, may_create=not await store.read(REGISTRY, _has_sealed))
        door = Door(store=store, clock=clock, ids=ids, vault=Vault(key, ids), settings=settings)
        await store.read(REGISTRY, door.vault.check)
        await _not_before_the_last_event(store, clock)
        await create_tenant(door, DEFAULT_TENANT)
        if settings.store is not None:
            await _agree_on_the_key(door)
        yield door
    finally:
        await store.close()


def weights_for(settings: Settings) -> Weights:
    """The weights of recall. Word vectors tell less than a model that reads whole sentences."""
    dense = settings.recall_dense
    if dense is None and settings.embedder == "static":
        dense = 0.8
    return DEFAULT_WEIGHTS if dense is None else replace(DEFAULT_WEIGHTS, dense=dense)


@asynccontextmanager
async def open_index(settings: Settings, door: Door) -> AsyncIterator[Index]:
    """What a door's entries are searched in, with the embedder that the settings name.

    Raises ConfigurationError where that cannot be opened.
    """
    embedder = await asyncio.to_thread(
        open_embedder,
        settings.embedder,
        key=settings.embedder_key,
        threads=settings.embedder_threads,
    )
    index = Index(door, embedder, weights_for(settings))
    try:
        yield index
    finally:
        index.close()


async def open_store(settings: Settings, *, exclusive: bool = True) -> Store:
    """The store that the settings name. Raises ConfigurationError and StoreLockedError."""
    if settings.store is None:
        return SqliteStore.open(
            settings.database, exclusive=exclusive, erase_within=settings.erase_within
        )
    _require_driver()
    from memorywall.storage.postgres.store import PostgresStore

    return await PostgresStore.open(
        settings.store, connections=settings.store_connections, deadline=settings.store_deadline
    )


async def migrate_store(url: str) -> list[str]:
    """Brings the schema of a PostgreSQL database up to date; returns what was applied."""
    _require_driver()
    from memorywall.storage.postgres.migrate import migrate

    return await migrate(url)


def _require_driver() -> None:
    """Raises ConfigurationError where the driver of PostgreSQL, which is an extra, is missing."""
    if find_spec("asyncpg") is None:
        raise ConfigurationError("PostgreSQL needs its driver: pip install 'memorywall[postgres]'")


async def _agree_on_the_key(door: Door) -> None:
    """Several servers share this store, and the first of them has the say which key seals it."""
    with suppress(KeyUnavailableError):
        await door.vault.prepare(door.store, DEFAULT_TENANT, door.now())
    await door.store.read(REGISTRY, door.vault.check)


def open_inspection(settings: Settings) -> Inspection:
    """A snapshot of a store for `verify`, beside a running server too."""
    if settings.store is not None:
        _require_driver()
        from memorywall.storage.postgres.inspection import PostgresInspection

        return PostgresInspection(settings.store)
    if not settings.database.exists():
        raise ConfigurationError(f"there is no database at {settings.database}")
    return SqliteInspection(settings.database)


async def open_origin(settings: Settings) -> Origin:
    """A snapshot of everything in a store, to copy from, beside a running server too."""
    if settings.store is None:
        return SqliteOrigin.open(settings.database)
    _require_driver()
    from memorywall.storage.postgres.transfer import PostgresOrigin

    return await PostgresOrigin.open(settings.store)


async def open_target(settings: Settings, *, new: bool = False) -> Target:
    """A store to copy into, which no server has open.

    new: in a data directory, begin a database that is there only once it is whole
    Raises StoreLockedError and ConfigurationError.
    """
    if settings.store is not None:
        _require_driver()
        from memorywall.storage.postgres.transfer import PostgresTarget

        return await PostgresTarget.open(settings.store)
    if not new:
        return SqliteTarget.open(settings.database)
    settings.database.parent.mkdir(parents=True, exist_ok=True)
    return SqliteBackup.create(settings.database)


async def create_backup(file: Path) -> Target:
    """A new backup file, to copy into."""
    return SqliteBackup.create(file)


async def open_backup(file: Path) -> Origin:
    """A backup file, to copy from."""
    return read_backup(file)


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
    except OSError as error:
        raise ConfigurationError(f"the key {path} cannot be opened: {error.strerror}") from error
    if mode & 0o077:
        raise ConfigurationError(f"{path} can be read by others; `chmod 600` it")
    return _decode_key(path.read_text(encoding="ascii", errors="replace"), str(path))


def _create_key(path: Path) -> bytes:
    """Makes the key, so that after a crash it is there whole or not at all: what is sealed under
    a key that is lost is lost with it."""
    key = secrets.token_bytes(KEY_BYTES)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
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

    async def names(transaction: Transaction) -> list[str]:
        return await transaction.identities.tenants()

    for tenant in await store.read(REGISTRY, names):

        async def script(transaction: Transaction, tenant: str = tenant) -> Event | None:
            return await transaction.events.latest(tenant)

        event = await store.read(tenant, script)
        if event is not None:
            # One later: ids of that very millisecond were counted up from a place not known.
            clock.not_before(instant_to_milliseconds(event.timestamp) + 1)


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
