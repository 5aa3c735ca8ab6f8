"""`client.shared`: state that agents share while they work, in no colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType

from memorywall.records.entry import Priority, Sensitivity
from memorywall.records.tier import Tier
from memorywall.sdk.batch import Sources
from memorywall.sdk.client_state import ClientState, shared_namespace
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.memory import MemoryCore
from memorywall.sdk.models import EntryPage, MemoryEntry


class SharedCore:
    """The operations on shared state, as scripts for a driver.

    A scope is `global`, `team:` and a team's name, or `agent`, which is the client's own.
    """

    def __init__(self, state: ClientState) -> None:
        self._state = state
        self._memory = MemoryCore(state)

    def get(self, key: str, scope: str = "global") -> RequestGenerator[MemoryEntry | None]:
        """The entry of this key, or None."""
        namespace = yield from shared_namespace(self._state, scope)
        return (yield from self._memory.get(namespace, key, Tier.SHARED))

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
        """Writes an entry and returns it as the server now has it.

        It is made if this client has not seen it, and else changed on condition that it still has
        the version last seen: see `client.memory.set`. Within `client.claims.hold` of this key and
        scope it is written under that claim.

        version: the version to replace, whatever this client has seen
        derived_from: the entries, as they were read, that this one was made from
        fencing_token: of the claim it is written under, where it is not one held with `hold`

        Raises MemoryConflictError, with the current value and version, when another writer came
        first; FencedError when the key is claimed by another, or the own claim is over.
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

    def list(
        self,
        scope: str = "global",
        *,
        tags: Sequence[str] | str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> RequestGenerator[EntryPage]:
        """A page of a scope's entries, newest first; those that have all of these tags."""
        namespace = yield from shared_namespace(self._state, scope)
        return (
            yield from self._memory.query(
                namespace=namespace,
                memory_type=Tier.SHARED,
                tags=tags,
                limit=limit,
                offset=offset,
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
        """Deletes an entry at once and for good; with `version` only if it has that one.

        Raises MemoryNotFoundError, MemoryConflictError, FencedError, MemoryAccessError.
        """
        namespace = yield from shared_namespace(self._state, scope)
        yield from self._memory.delete(
            namespace, key, Tier.SHARED, version=version, fencing_token=fencing_token
        )
