"""`client.shared`: state that agents share while they work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from msgspec import UNSET, UnsetType

from memorywall.records.entry import Priority, Sensitivity
from memorywall.records.tier import Tier
from memorywall.sdk.batch import Sources
from memorywall.sdk.client_state import ClientState, shared_namespace
from memorywall.sdk.effects import RequestGenerator, StreamGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method, stream_method
from memorywall.sdk.fields import SharedOptions
from memorywall.sdk.memory import PATIENCE, MemoryCore
from memorywall.sdk.models import EntryPage, MemoryEntry
from memorywall.wire.events import EventResponse


class SharedCore:
    """The operations on shared state, as request generators.

    A scope is `global`, `team:` and a team's name, or `agent`, which is the client's own.
    """

    def __init__(self, state: ClientState) -> None:
        self._state = state
        self._memory = MemoryCore(state)

    def get(
        self, key: str, scope: str = "global", *, schema_version: int | None = None
    ) -> RequestGenerator[MemoryEntry | None]:
        """Returns the entry of this key, or None.

        schema_version: a major version of the scope's schemas, which the entry must fit; raises
            SchemaVersionError otherwise
        """
        namespace = yield from shared_namespace(self._state, scope)
        return (
            yield from self._memory.get(namespace, key, Tier.SHARED, schema_version=schema_version)
        )

    def set(
        self,
        key: str,
        value: Mapping[str, Any],
        scope: str = "global",
        *,
        tags: Sequence[str] | str | None = None,
        ttl: str | UnsetType | None = UNSET,
        expires_at: datetime | str | UnsetType | None = UNSET,
        priority: Priority | None = None,
        sensitivity: Sensitivity | None = None,
        version: int | None = None,
        derived_from: Sources | None = None,
        fencing_token: int | None = None,
    ) -> RequestGenerator[MemoryEntry]:
        """Writes an entry and returns it with the state that the server has stored.

        An entry that this client has not seen is created. Otherwise it is updated if it still has
        the last seen version: see `client.memory.set`. Within `client.claims.hold` of this key and
        scope the write uses that claim.

        version: the version to replace, regardless of seen versions
        derived_from: the source entries, as they were read
        fencing_token: the token of the claim, if it is not held with `hold`

        Raises MemoryConflictError, with the current value and version, if another write came first;
        FencedError if another client has claimed the key, or the own claim is over.
        """
        namespace = yield from shared_namespace(self._state, scope)
        return (
            yield from self._memory.set(
                namespace,
                key,
                value,
                Tier.SHARED,
                tags=tags,
                ttl=ttl,
                expires_at=expires_at,
                priority=priority,
                sensitivity=sensitivity,
                version=version,
                derived_from=derived_from,
                fencing_token=fencing_token,
            )
        )

    def put(
        self,
        key: str,
        value: Mapping[str, Any],
        scope: str = "global",
        *,
        version: int | None = None,
        if_absent: bool = False,
        **options: Unpack[SharedOptions],
    ) -> RequestGenerator[MemoryEntry]:
        """Creates an entry or replaces its value: see `client.memory.put`. Within
        `client.claims.hold` of this key and scope the write uses that claim.

        version: the version to replace, regardless of seen versions
        if_absent: whether an entry that exists is refused with EntryExistsError; default: false
        options: further fields, see `client.memory.set`

        Raises MemoryConflictError, EntryExistsError, FencedError, MemoryAccessError.
        """
        namespace = yield from shared_namespace(self._state, scope)
        return (
            yield from self._memory.put(
                namespace, key, value, Tier.SHARED, version=version, if_absent=if_absent, **options
            )
        )

    def update(
        self,
        key: str,
        change: Callable[[dict[str, Any]], Mapping[str, Any]],
        scope: str = "global",
        *,
        default: Mapping[str, Any] | None = None,
        **options: Unpack[SharedOptions],
    ) -> RequestGenerator[MemoryEntry]:
        """Changes the value of an entry with a function; concurrent updates lose nothing: see
        `client.memory.update`.

        change: takes the value and returns the new one; it may be called several times
        default: the value that `change` gets if there is no entry; default: MemoryNotFoundError
        options: further fields, see `client.memory.set`

        Raises MemoryNotFoundError, MemoryConflictError, FencedError, MemoryAccessError.
        """
        namespace = yield from shared_namespace(self._state, scope)
        return (
            yield from self._memory.update(
                namespace, key, change, Tier.SHARED, default=default, **options
            )
        )

    def list(
        self,
        scope: str = "global",
        *,
        tags: Sequence[str] | str | None = None,
        limit: int | None = None,
        offset: int = 0,
        schema_version: int | None = None,
    ) -> RequestGenerator[EntryPage]:
        """Returns a page of a scope's entries with all of these tags, newest first; with
        `schema_version`, only those that fit the scope's schemas of this major version."""
        namespace = yield from shared_namespace(self._state, scope)
        return (
            yield from self._memory.query(
                namespace=namespace,
                memory_type=Tier.SHARED,
                tags=tags,
                limit=limit,
                offset=offset,
                schema_version=schema_version,
            )
        )

    def delete(
        self,
        key: str,
        scope: str = "global",
        *,
        version: int | None = None,
        fencing_token: int | None = None,
    ) -> RequestGenerator[None]:
        """Deletes an entry permanently; with `version` only if the entry has that version.

        Raises MemoryNotFoundError, MemoryConflictError, FencedError, MemoryAccessError.
        """
        namespace = yield from shared_namespace(self._state, scope)
        yield from self._memory.delete(
            namespace, key, Tier.SHARED, version=version, fencing_token=fencing_token
        )

    def watch(
        self,
        scope: str = "global",
        *,
        key: str | None = None,
        after: int | None = None,
        patience: float = PATIENCE,
    ) -> StreamGenerator[EventResponse]:
        """Iterates over the changes of a scope, or of one key, as they occur, without end: see
        `client.memory.watch`. A scope without entries can be followed.

        after: the position to start after; default: the present
        patience: seconds of pauses without a connection until MemoryTransportError

        Raises MemoryAccessError when the scope may not be read, also during the iteration.
        """
        return self._memory.watch(after=after, patience=patience, scope=scope, key=key)


class _SharedMethods:
    get = method(SharedCore.get)
    set = method(SharedCore.set)
    put = method(SharedCore.put)
    update = method(SharedCore.update)
    list = method(SharedCore.list)
    delete = method(SharedCore.delete)
    watch = stream_method(SharedCore.watch)


class SharedClient(_SharedMethods, Facade[SharedCore]):
    """Writes, reads, deletes and follows state that agents share while they work."""


class AsyncSharedClient(_SharedMethods, AsyncFacade[SharedCore]):
    """Writes, reads, deletes and follows state that agents share while they work."""
