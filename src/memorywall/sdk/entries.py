"""Writes, reads and deletions of entries: a part of the operations of `client.memory`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import compress
from operator import not_
from typing import Any, Unpack

from memorywall.records.errors import EntryExistsError, MemoryNotFoundError
from memorywall.records.tier import Tier
from memorywall.records.worthiness import DUPLICATE
from memorywall.sdk import retry
from memorywall.sdk.attachments import AttachmentsCore
from memorywall.sdk.batch import batch_element
from memorywall.sdk.effects import RequestGenerator, operations
from memorywall.sdk.fencing import fencing_token_of
from memorywall.sdk.fields import WriteOptions, entry_fields
from memorywall.sdk.filters import (
    FilterArguments,
    MemoryType,
    instant,
    without_absent,
)
from memorywall.sdk.indexing import WaitFor, may_wait
from memorywall.sdk.lookup import warn_of_evictions
from memorywall.sdk.models import (
    BatchResult,
    DecodedBatch,
    MemoryEntry,
)
from memorywall.sdk.queries import QueryCore
from memorywall.sdk.retry import Shape, call
from memorywall.wire.entries import DeletedResponse


class EntriesCore(QueryCore):
    """The operations on memory, as request generators."""

    @property
    def attachments(self) -> AttachmentsCore:
        """The operations on the files of entries."""
        return AttachmentsCore(self._state, "entry")

    @may_wait
    def set(
        self,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        memory_type: MemoryType | None = None,
        *,
        version: int | None = None,
        **options: Unpack[WriteOptions],
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
        context_id: the id of the context, from `client.context`, that the value answers from
        fencing_token: the token of the lease or claim, if it is not the client's own
        wait_for: "indexed" to return when a search finds the entry by words and by meaning; raises
            EntryNotIndexedError, with the entry stored, if the embedder does not answer in time

        value: an object; another value is a ValidationError

        Raises MemoryConflictError, with the current value and version, if the entry has another
        version or exists unseen. Repeating the call raises the error again until `version` names
        the merged version. Threads or tasks that share a client and an entry should pass the
        `version` that they read, because the last seen version belongs to the whole client. Raises
        MemoryNotFoundError if the entry to update is gone; repeating the call creates it. Raises
        FencedError if another client's claim or task covers the entry, or the own lease is over;
        MemoryCapacityError, MemoryAccessError, ValidationError, ValueTooLargeError.
        """
        fields, fencing_token = entry_fields(value, options), options.get("fencing_token")
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
        self,
        namespace: str,
        key: str,
        memory_type: MemoryType | None = None,
        *,
        version: int | None = None,
        as_of: datetime | str | None = None,
        schema_version: int | None = None,
    ) -> RequestGenerator[MemoryEntry | None]:
        """Returns the entry of this name, or None.

        Without `memory_type` the narrowest tier wins: working memory of the client's task, working,
        session, episodic, semantic, procedural, shared. The client's own memory comes before that
        of other agents. The log `memorywall.memory` contains a warning if the entry hides one of
        the same name in another tier.

        version, as_of, schema_version: as in `get_by_id`; MemoryNotFoundError if the entry has no
            such version
        """
        asked = _asked(version, as_of, schema_version)
        if not asked:
            entry = yield from self._read(namespace, key, memory_type)
        else:
            entry = yield from self._look_up(namespace, key, memory_type, asked)
        if version is not None or as_of is not None:
            return entry
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
        schema_version: int | None = None,
    ) -> RequestGenerator[MemoryEntry]:
        """Returns one entry. Raises MemoryNotFoundError, MemoryAccessError.

        version: an earlier version, in a versioned tier
        as_of: RFC 3339 text or a datetime with a time zone; selects the version at that instant
        schema_version: a major version of the namespace's schemas, which the entry must fit; raises
            SchemaVersionError otherwise
        """
        entry = yield from self._read_by_id(entry_id, _asked(version, as_of, schema_version))
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

    def supersede(
        self,
        entry_id: str,
        newer_id: str,
        *,
        version: int | None = None,
        fencing_token: int | None = None,
    ) -> RequestGenerator[MemoryEntry]:
        """States that another entry supersedes an entry, and returns the older one with the state
        `superseded`: lists, searches and contexts leave it out.

        newer_id: the id of the entry that holds in its place
        version: the version of the older entry; default: its present one

        Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, TransitionError.
        """
        body = {"newer_id": newer_id}
        return (yield from self._move("supersede_entry", entry_id, version, fencing_token, body))

    def reinstate(
        self, entry_id: str, *, version: int | None = None, fencing_token: int | None = None
    ) -> RequestGenerator[MemoryEntry]:
        """Takes back that an entry was superseded, and returns it. The arguments and errors are
        those of `supersede`."""
        return (yield from self._move("reinstate_entry", entry_id, version, fencing_token))

    def _move(
        self,
        operation: str,
        entry_id: str,
        version: int | None,
        fencing_token: int | None,
        body: dict[str, Any] | None = None,
    ) -> RequestGenerator[MemoryEntry]:
        entry = yield from self._change(
            operation, MemoryEntry, entry_id, version, fencing_token, body
        )
        self._wrote(entry, created=False)
        return entry

    def _change(
        self,
        operation: str,
        shape: type[Shape],
        entry_id: str,
        version: int | None,
        fencing_token: int | None,
        body: dict[str, Any] | None = None,
    ) -> RequestGenerator[Shape]:
        """Returns the result of an operation that changes an entry in place.

        shape: the type of the result
        version: None for any, which is read for an operation that needs one
        """
        if version is None and operations()[operation].if_match == "required":
            version = (yield from call("get_entry", MemoryEntry, entry_id=entry_id)).version
        return (
            yield from call(
                operation,
                shape,
                body=body,
                if_match=version,
                fencing_token=fencing_token_of(self._state, fencing_token),
                entry_id=entry_id,
            )
        )

    def _delete(
        self, entry_id: str, version: int | None, fence: int | None
    ) -> RequestGenerator[None]:
        self._state.reads.drop_id(entry_id)
        try:
            yield from retry.remove(
                "delete_entry", entry_id=entry_id, if_match=version, fencing_token=fence
            )
        except MemoryNotFoundError:
            self._state.versions.forget_id(entry_id)
            raise
        self._state.reads.drop_id(entry_id)
        self._state.versions.forget_id(entry_id)

    @may_wait
    def batch(
        self,
        elements: Iterable[Mapping[str, Any]],
        *,
        wait_for: WaitFor | None = None,
        judge: bool = False,
    ) -> RequestGenerator[BatchResult]:
        """Writes several entries, all or none.

        An element has the fields of `set`, by name. An element updates an entry if it has an `id`
        and the `version` to replace, or names an entry that this client has seen; otherwise it
        creates one. The error's `index` names the first failed element. All elements use the
        client's own fencing token; use `set` for claimed keys.

        wait_for: as for `set`, for all entries
        judge: whether new entries are judged like remembered texts: `verdicts` of the result says
            which are worth keeping. A tenant that refuses the others leaves them out.
        """
        self._state.reads.clear()
        given = [batch_element(self._state, one, index) for index, one in enumerate(elements)]
        try:
            written = yield from call(
                "write_batch",
                DecodedBatch,
                body={"entries": given},
                query={"judge": True} if judge else {},
                fencing_token=fencing_token_of(self._state),
            )
        except EntryExistsError as error:
            self._notice(error)
            raise
        except MemoryNotFoundError as error:
            if error.index is not None and error.index < len(given):
                self._state.versions.forget_id(given[error.index].get("id", ""))
            raise
        refused = [one is not None and one.refused for one in written.verdicts]
        stored = compress(given, map(not_, refused)) if written.verdicts else given
        for element, entry in zip(stored, written.entries, strict=False):
            self._wrote(entry, created="id" not in element)
        warn_of_evictions(written.warnings)
        return BatchResult(
            written.entries,
            created=written.created,
            updated=written.updated,
            warnings=written.warnings,
            verdicts=written.verdicts,
        )

    def delete_matching(
        self, *, limit: int | None = None, offset: int = 0, **wanted: Unpack[FilterArguments]
    ) -> RequestGenerator[int]:
        """Deletes every entry that `query` would find and that may be deleted; with a limit, that
        page of them. Returns the number of deleted entries. A filter without conditions is
        refused."""
        params = yield from self._parameters(wanted, limit, offset)
        self._state.versions.doubt()
        self._state.reads.clear()
        fence = fencing_token_of(self._state)
        reply = yield from call(
            "delete_matching", DeletedResponse, query=params, fencing_token=fence
        )
        self._state.reads.clear()
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

    def send_remembered(
        self, body: dict[str, Any], fence: int | None
    ) -> RequestGenerator[MemoryEntry]:
        """Stores a text; see `client.remember`."""
        entry = yield from call("remember", MemoryEntry, body=body, fencing_token=fence)
        is_known = entry.worthiness is not None and entry.worthiness.rule == DUPLICATE
        self._wrote(entry, created=not is_known)
        return entry

    def _update(
        self, entry_id: str, version: int, fields: dict[str, Any], fence: int | None
    ) -> RequestGenerator[MemoryEntry]:
        self._state.reads.drop_id(entry_id)
        entry = yield from retry.update(entry_id, version, fields, self._state.agent, fence)
        self._wrote(entry, created=False)
        return entry

    def _fence(self, given: int | None, tier: str, namespace: str, key: str) -> int | None:
        if tier != Tier.SHARED:
            return fencing_token_of(self._state, given)
        return fencing_token_of(self._state, given, namespace, key)

    def _wrote(self, entry: MemoryEntry, *, created: bool) -> None:
        if created and self._state.agent is None:
            self._state.agent = entry.agent_id
        self._state.versions.saw(entry)
        self._state.reads.drop(entry.namespace, entry.key)
        warn_of_evictions(entry.warnings)

    def _notice(self, error: EntryExistsError) -> None:
        if isinstance(error.current, MemoryEntry):
            self._state.versions.noticed(error.current)
            self._state.reads.drop(error.current.namespace, error.current.key)


def _asked(
    version: int | None, as_of: datetime | str | None, schema_version: int | None
) -> dict[str, Any]:
    """Returns the parameters of a read of a version; empty for the present one of any schemas."""
    at = None if as_of is None else instant(as_of)
    return without_absent({"version": version, "as_of": at, "schema_version": schema_version})
