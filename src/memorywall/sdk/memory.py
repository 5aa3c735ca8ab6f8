"""`client.memory`: the operations on entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from msgspec import UNSET, UnsetType

from memorywall.records.entry import Origin, Priority, Scope, Sensitivity
from memorywall.records.errors import EntryExistsError, MemoryNotFoundError, RequestError
from memorywall.records.tier import Tier
from memorywall.sdk import retry
from memorywall.sdk.attachments import AttachmentsCore
from memorywall.sdk.batch import Sources, batch_element
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.fencing import fencing_token_of
from memorywall.sdk.fields import entry_fields
from memorywall.sdk.filters import (
    SHARED_TYPES,
    FilterArguments,
    MemoryType,
    instant,
    parameters,
)
from memorywall.sdk.models import (
    BatchResult,
    DecodedBatch,
    DecodedName,
    MemoryEntry,
)
from memorywall.sdk.queries import QueryCore
from memorywall.sdk.retry import call
from memorywall.sdk.shadows import warn_of_shadows
from memorywall.wire.entries import DeletedResponse

_SAME_NAME = 1_000


class MemoryCore(QueryCore):
    """The operations on memory, as request generators."""

    @property
    def attachments(self) -> AttachmentsCore:
        """The operations on the files of entries."""
        return AttachmentsCore(self._state, "entry")

    def set(
        self,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        memory_type: MemoryType | None = None,
        *,
        tags: Sequence[str] | str | None = None,
        scope: Scope | Mapping[str, str] | None = None,
        ttl: str | UnsetType | None = UNSET,
        expires_at: datetime | str | UnsetType | None = UNSET,
        pinned: bool | None = None,
        priority: Priority | None = None,
        sensitivity: Sensitivity | None = None,
        version: int | None = None,
        derived_from: Sources | None = None,
        kind: str | None = None,
        subjects: Sequence[str] | None = None,
        origin: Origin | None = None,
        source: str | None = None,
        fencing_token: int | None = None,
    ) -> RequestGenerator[MemoryEntry]:
        """Writes an entry and returns it with the state that the server has stored.

        An entry that this client has seen is updated if it still has the last seen version
        (If-Match); omitted fields do not change. An entry that the client has not seen is created.
        Without `memory_type` the client uses the narrowest tier in which it knows the entry, or
        else working memory, which is bound to the client's task if `scope` is omitted. A working
        entry hides entries of the same name in other tiers from `get` without `memory_type`.

        version: the version to replace, regardless of seen versions
        derived_from: the source entries, as they were read; stored in `provenance`
        kind: the kind of the value; the server checks the value against the kind's schema
        subjects: the people that the entry is about
        origin: the origin of the content, at or below the trust of the client's key
        source: the URI of the source
        fencing_token: the token of the lease or claim, if it is not the client's own

        value: an object; another value is a ValidationError

        Raises MemoryConflictError, with the current value and version, if the entry has another
        version or exists unseen. Repeating the call raises the error again until `version` names
        the merged version. Threads or tasks that share a client and an entry should pass the
        `version` that they read, because the last seen version belongs to the whole client. Raises
        MemoryNotFoundError if the entry to update is gone; repeating the call creates it. Raises
        FencedError if another client's claim or task covers the entry, or the own lease is over;
        MemoryCapacityError, MemoryAccessError, ValidationError, ValueTooLargeError.
        """
        fields = entry_fields(
            value,
            {
                "tags": tags,
                "scope": scope,
                "ttl": ttl,
                "expires_at": expires_at,
                "pinned": pinned,
                "priority": priority,
                "sensitivity": sensitivity,
                "derived_from": derived_from,
                "kind": kind,
                "subjects": subjects,
                "origin": origin,
                "source": source,
            },
        )
        known = self._state.versions.find(namespace, key, memory_type)
        expected = version if version is not None or known is None else known.version
        if expected is None:
            tier = str(memory_type or (Tier.WORKING if known is None else known.memory_type))
            fence = self._fence(fencing_token, tier, namespace, key)
            return (yield from self.create(namespace, key, tier, fields, fence))
        if known is not None:
            entry_id, tier = known.id, known.memory_type
        else:
            found = yield from self._look_up(namespace, key, memory_type)
            if found is None:
                raise MemoryNotFoundError
            entry_id, tier = found.id, found.memory_type
        fence = self._fence(fencing_token, tier, namespace, key)
        try:
            return (yield from self._update(entry_id, expected, fields, fence))
        except MemoryNotFoundError:
            self._state.versions.forget_id(entry_id)
            if version is None and known is not None and known.doubtful:
                # This client's own deletion by filter removed the entry, so the client knows that
                # it is gone.
                return (yield from self.create(namespace, key, tier, fields, fence))
            raise

    def get(
        self, namespace: str, key: str, memory_type: MemoryType | None = None
    ) -> RequestGenerator[MemoryEntry | None]:
        """Returns the entry of this name, or None.

        Without `memory_type` the narrowest tier wins: working memory of the client's task, working,
        session, episodic, semantic, procedural, shared. The client's own memory comes before that
        of other agents. The log `memorywall.memory` contains a warning if the entry hides one of
        the same name in another tier.
        """
        entry = yield from self._look_up(namespace, key, memory_type)
        if entry is None:
            self._state.versions.forget(namespace, key, memory_type)
            return None
        if memory_type is None:
            self._state.versions.forget_narrower(entry)
        self._saw(entry)
        return entry

    def get_by_id(
        self,
        entry_id: str,
        *,
        version: int | None = None,
        as_of: datetime | str | None = None,
    ) -> RequestGenerator[MemoryEntry]:
        """Returns one entry. Raises MemoryNotFoundError, MemoryAccessError.

        version: an earlier version, in a versioned tier
        as_of: RFC 3339 text or a datetime with a time zone; selects the version at that instant
        """
        asked = {"version": version, "as_of": None if as_of is None else instant(as_of)}
        entry = yield from call("get_entry", MemoryEntry, entry_id=entry_id, query=asked)
        yield from self._learn_agent((entry,))
        if version is None and as_of is None:
            self._saw(entry)
        return entry

    def delete(
        self,
        namespace: str,
        key: str,
        memory_type: MemoryType | None = None,
        *,
        version: int | None = None,
        fencing_token: int | None = None,
    ) -> RequestGenerator[None]:
        """Deletes the entry that `get` would return, permanently; with `version` only if the entry
        has that version. Raises MemoryNotFoundError, MemoryConflictError, MemoryAccessError."""
        entry = yield from self._look_up(namespace, key, memory_type)
        if entry is None:
            self._state.versions.forget(namespace, key, memory_type)
            raise MemoryNotFoundError
        fence = self._fence(fencing_token, entry.memory_type, namespace, key)
        yield from self._delete(entry.id, version, fence)

    def delete_by_id(
        self, entry_id: str, *, version: int | None = None, fencing_token: int | None = None
    ) -> RequestGenerator[None]:
        """Deletes one entry permanently; with `version` only if the entry has that version."""
        yield from self._delete(entry_id, version, fencing_token_of(self._state, fencing_token))

    def _delete(
        self, entry_id: str, version: int | None, fence: int | None
    ) -> RequestGenerator[None]:
        try:
            yield from retry.remove(
                "delete_entry", entry_id=entry_id, if_match=version, fencing_token=fence
            )
        except MemoryNotFoundError:
            self._state.versions.forget_id(entry_id)
            raise
        self._state.versions.forget_id(entry_id)

    def batch(self, elements: Iterable[Mapping[str, Any]]) -> RequestGenerator[BatchResult]:
        """Writes several entries, all or none.

        An element has the fields of `set`, by name. An element updates an entry if it has an `id`
        and the `version` to replace, or names an entry that this client has seen; otherwise it
        creates one. The error's `index` names the first failed element. All elements use the
        client's own fencing token; use `set` for claimed keys.
        """
        given = [batch_element(self._state, one, index) for index, one in enumerate(elements)]
        try:
            written = yield from call(
                "write_batch",
                DecodedBatch,
                body={"entries": given},
                fencing_token=fencing_token_of(self._state),
            )
        except EntryExistsError as error:
            self._notice(error)
            raise
        except MemoryNotFoundError as error:
            if error.index is not None and error.index < len(given):
                self._state.versions.forget_id(given[error.index].get("id", ""))
            raise
        for element, entry in zip(given, written.entries, strict=False):
            self._wrote(entry, created="id" not in element)
        return BatchResult(written.entries, created=written.created, updated=written.updated)

    def delete_matching(
        self, *, limit: int | None = None, offset: int = 0, **wanted: Unpack[FilterArguments]
    ) -> RequestGenerator[int]:
        """Deletes every entry that `query` would find and that may be deleted; with a limit, that
        page of them. Returns the number of deleted entries. A filter without conditions is
        refused."""
        params = yield from self._parameters(wanted, limit, offset)
        self._state.versions.doubt()
        fence = fencing_token_of(self._state)
        reply = yield from call(
            "delete_matching", DeletedResponse, query=params, fencing_token=fence
        )
        return reply.deleted

    def create(
        self,
        namespace: str,
        key: str | None,
        memory_type: str,
        fields: dict[str, Any],
        fence: int | None,
    ) -> RequestGenerator[MemoryEntry]:
        """Creates an entry; without a key the server makes one."""
        body = {"namespace": namespace, "memory_type": memory_type, **fields}
        if key is not None:
            body["key"] = key
        task_id = self._state.task_id
        if memory_type == Tier.WORKING and "scope" not in fields and task_id is not None:
            body["scope"] = {"task_id": task_id}
        try:
            entry = yield from call("create_entry", MemoryEntry, body=body, fencing_token=fence)
        except EntryExistsError as error:
            self._notice(error)
            raise
        self._wrote(entry, created=True)
        return entry

    def _update(
        self, entry_id: str, version: int, fields: dict[str, Any], fence: int | None
    ) -> RequestGenerator[MemoryEntry]:
        entry = yield from retry.update(entry_id, version, fields, self._state.agent, fence)
        self._state.versions.saw(entry)
        return entry

    def _fence(self, given: int | None, tier: str, namespace: str, key: str) -> int | None:
        if tier != Tier.SHARED:
            return fencing_token_of(self._state, given)
        return fencing_token_of(self._state, given, namespace, key)

    def _look_up(
        self, namespace: str, key: str, memory_type: MemoryType | None
    ) -> RequestGenerator[MemoryEntry | None]:
        """Returns the entry of this name in the narrowest tier, without recording it as seen."""
        if self._state.finds_by_name:
            query = {
                "namespace": namespace,
                "key": key,
                "memory_type": memory_type,
                "scope.task_id": self._state.task_id,
            }
            try:
                found = yield from call("find_entry", DecodedName, query=query)
                entry = found.entry
                if entry and found.shadows:
                    warn_of_shadows(entry, found.shadows)
            except (MemoryNotFoundError, RequestError):
                # An older server reads the path as an entry's id. Other refusals occur below as
                # well.
                entry = UNSET
            if entry is not UNSET:
                yield from self._learn_agent(() if entry is None else (entry,))
                return entry
        entry = yield from self._search_for(namespace, key, memory_type)
        self._state.finds_by_name = False
        return entry

    def _search_for(
        self, namespace: str, key: str, memory_type: MemoryType | None
    ) -> RequestGenerator[MemoryEntry | None]:
        """Finds the entry with a query, for servers without a lookup by name."""
        wanted = FilterArguments(namespace=namespace, key=key)
        if memory_type in SHARED_TYPES:
            wanted["memory_type"] = memory_type
        params = parameters(wanted)
        full = self._state.versions.full_namespace(namespace)
        page = yield from self._fetch({**params, "limit": str(_SAME_NAME)})
        candidates = [
            entry
            for entry in page
            # A namespace that ends in `*` is a prefix; no entry has such a namespace.
            if entry.namespace == full and memory_type in (None, entry.memory_type)
        ]
        return min(candidates, key=self._breadth, default=None)

    def _breadth(self, entry: MemoryEntry) -> tuple[bool, int, bool]:
        """Sorts by tier, narrowest first; other agents' memory last, unless it is of the same
        task."""
        foreign = not self._is_own(entry)
        task_id = self._state.task_id
        if entry.memory_type is Tier.WORKING and task_id and entry.scope.task_id == task_id:
            return (False, -1, foreign)
        return (foreign, list(Tier).index(entry.memory_type), foreign)

    def _wrote(self, entry: MemoryEntry, *, created: bool) -> None:
        if created and self._state.agent is None:
            self._state.agent = entry.agent_id
        self._state.versions.saw(entry)

    def _notice(self, error: EntryExistsError) -> None:
        if isinstance(error.current, MemoryEntry):
            self._state.versions.noticed(error.current)
