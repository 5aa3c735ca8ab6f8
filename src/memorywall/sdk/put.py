"""`client.memory.put` and `client.memory.update`: writes that need no knowledge of versions."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Unpack

import msgspec

from memorywall.records.errors import (
    EntryExistsError,
    MemoryConflictError,
    MemoryNotFoundError,
    PreconditionError,
)
from memorywall.records.tier import Tier
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import Pause, Request, RequestGenerator
from memorywall.sdk.entries import EntriesCore
from memorywall.sdk.fields import WriteOptions, entry_fields, session_of
from memorywall.sdk.filters import SHARED_TYPES, FilterArguments, MemoryType
from memorywall.sdk.indexing import may_wait
from memorywall.sdk.lookup import SAME_NAME
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.retry import ask, backoff
from memorywall.sdk.version_cache import KnownVersion
from memorywall.wire.operation import MERGE_PATCH

UPDATE_ATTEMPTS = 32
_FIRST_WAIT = 0.01
_LONGEST_WAIT = 0.5
_FREELY_WRITTEN = frozenset({Tier.SEMANTIC, Tier.PROCEDURAL})
"""The tiers in which a namespace may let the last write win."""


class PutCore(EntriesCore):
    """The operations on memory, with writes that retry, as request generators."""

    def __init__(self, state: ClientState, jitter: Callable[[], float] = random.random) -> None:
        super().__init__(state)
        self._jitter = jitter

    @may_wait
    def put(
        self,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        memory_type: MemoryType | None = None,
        *,
        version: int | None = None,
        if_absent: bool = False,
        **options: Unpack[WriteOptions],
    ) -> RequestGenerator[MemoryEntry]:
        """Creates an entry or replaces its value, and returns it as the server has stored it.

        The options are the fields of `set`; omitted fields do not change. Without `memory_type` the
        tier is the narrowest in which the entry exists, or else working memory.

        The agent's own entries outside of tasks are replaced whatever their value is: if one has
        changed since this client has seen it, its version is read, and read again after another
        write (RFC-0015 section 3.3). An entry of a task or of a tier that agents share is replaced
        at the version that this client has seen. If it has changed since, MemoryConflictError is
        raised, because a repetition would lose the other change; `update` computes the value
        again. One that this client has not seen is replaced at the version that it has now.

        version: the version to replace, regardless of seen versions
        if_absent: whether an existing entry is an EntryExistsError instead of a replacement

        Raises MemoryConflictError, MemoryNotFoundError for a `version` without an entry, and the
        errors of `set`.
        """
        fields = entry_fields(value, options)
        session, token = session_of(options), options.get("fencing_token")
        known = self._known(namespace, key, memory_type, session)
        tier = memory_type or (None if known is None else known.memory_type)
        found: MemoryEntry | None = None
        if tier is None:
            found = yield from self._find(namespace, key, None, session)
            tier = Tier.WORKING if found is None else found.memory_type
        fence = self._fence(token, tier, namespace, key)
        name = {"namespace": namespace, "key": key, "memory_type": str(tier)}
        if version is not None or if_absent:
            return (
                yield from self._send_put(name, fields, fence, version=version, absent=if_absent)
            )
        if known is not None and known.version is not None:
            replaced = yield from self._replace_seen(
                known, known.version, name, fields, fence, session
            )
            if replaced is not None:
                return replaced
        return (yield from self._put_at_present_version(name, fields, fence, session))

    @may_wait
    def update(
        self,
        namespace: str,
        key: str,
        change: Callable[[dict[str, Any]], Mapping[str, Any]],
        memory_type: MemoryType | None = None,
        *,
        default: Mapping[str, Any] | None = None,
        attempts: int = UPDATE_ATTEMPTS,
        **options: Unpack[WriteOptions],
    ) -> RequestGenerator[MemoryEntry]:
        """Changes the value of an entry with a function, and returns the entry as the server has
        stored it. Concurrent updates lose nothing.

        The entry is read, `change` gets the value and returns the new one, and the entry is
        replaced if it still has the version that was read. After another write this is repeated
        after a pause, so `change` may run several times and should have no other effects.

        change: a function from a value to a value; an asynchronous function is refused
        default: the value that `change` gets if there is no entry; the entry is then created
        attempts: the most attempts; default 32

        Raises MemoryNotFoundError if there is no entry and no `default`, MemoryConflictError after
        the last attempt, and the errors of `set`.
        """
        session, token = session_of(options), options.get("fencing_token")
        conflict: MemoryConflictError | None = None
        refused = 0
        for pause in self._pauses(attempts):
            yield from _wait(pause)
            entry = yield from self._find(namespace, key, memory_type, session)
            if entry is None and default is None:
                raise MemoryNotFoundError("there is no entry to update; give `default` to make one")
            tier = entry.memory_type if entry is not None else memory_type or Tier.WORKING
            before = default if entry is None else entry.value
            fields = entry_fields(change(copy.deepcopy(dict(before or {}))), options)
            name = {"namespace": namespace, "key": key, "memory_type": str(tier)}
            version = None if entry is None else entry.version
            fence = self._fence(token, tier, namespace, key)
            try:
                return (
                    yield from self._send_put(
                        name, fields, fence, version=version, absent=entry is None
                    )
                )
            except MemoryNotFoundError:
                # The entry was deleted after it was read.
                continue
            except MemoryConflictError as error:
                conflict = error
                refused += entry is None
                if refused > 1 or error.current is None:
                    # The name is taken by an entry that this client cannot find.
                    raise
        raise _exhausted(attempts, conflict)

    def merge(
        self,
        namespace: str,
        key: str,
        patch: Mapping[str, Any],
        memory_type: MemoryType | None = None,
        *,
        fencing_token: int | None = None,
        attempts: int = UPDATE_ATTEMPTS,
    ) -> RequestGenerator[MemoryEntry]:
        """Merges a patch into the value of an entry (JSON Merge Patch, RFC 7396), and returns the
        entry as the server has stored it. Concurrent merges of different fields lose nothing.

        patch: the fields to replace; None removes a field, an object is merged
        fencing_token: the token of the lease or claim, if it is not the client's own
        attempts: the most attempts after changes by others; default 32

        Raises MemoryNotFoundError if there is no entry, MemoryConflictError after the last attempt,
        and the errors of `set`.
        """
        conflict: MemoryConflictError | None = None
        for pause in self._pauses(attempts):
            yield from _wait(pause)
            entry = yield from self._find(namespace, key, memory_type, None)
            if entry is None:
                raise MemoryNotFoundError
            request = Request(
                operation="update_entry",
                path={"entry_id": entry.id},
                body={"value": patch},
                media_type=MERGE_PATCH,
                if_match=entry.version,
                fencing_token=self._fence(fencing_token, entry.memory_type, namespace, key),
            )
            self._state.reads.drop_id(entry.id)
            try:
                merged = yield from ask(request, MemoryEntry)
            except MemoryConflictError as error:
                conflict = error
                continue
            self._wrote(merged, created=False)
            return merged
        raise _exhausted(attempts, conflict)

    def _replace_seen(
        self,
        known: KnownVersion,
        version: int,
        name: Mapping[str, str],
        fields: dict[str, Any],
        fence: int | None,
        session: str | None,
    ) -> RequestGenerator[MemoryEntry | None]:
        """Replaces a seen entry by its id, which a new entry of the same name does not have.
        Returns None if it is gone."""
        try:
            return (yield from self._update(known.id, version, _changes(fields), fence))
        except MemoryNotFoundError:
            self._state.versions.forget_id(known.id)
            return None
        except EntryExistsError:
            raise
        except MemoryConflictError as conflict:
            if self._is_private(conflict.current):
                return (
                    yield from self._put_at_present_version(
                        name, fields, fence, session, conflict.current
                    )
                )
            advised = _with_advice(conflict)
            if known.memory_type not in _FREELY_WRITTEN:
                raise advised from conflict
            try:
                return (yield from self._send_put(name, fields, fence))
            except PreconditionError:
                raise advised from conflict

    def _is_private(self, current: Any) -> bool:
        """Whether the entry of a conflict belongs to this agent and to no task, so that no other
        agent builds on its value."""
        if not isinstance(current, MemoryEntry) or current.memory_type in SHARED_TYPES:
            return False
        return current.scope.task_id is None and self._is_own(current)

    def _put_at_present_version(
        self,
        name: Mapping[str, str],
        fields: dict[str, Any],
        fence: int | None,
        session: str | None,
        current: MemoryEntry | None = None,
    ) -> RequestGenerator[MemoryEntry]:
        """Creates an entry, or replaces the entry of this name at the version that it has now.

        current: the entry, if the server has just sent it; default: it is created or read
        """
        conflict: MemoryConflictError | None = None
        unfound = 0
        for pause in self._pauses(UPDATE_ATTEMPTS):
            yield from _wait(pause)
            entry, current = current, None
            if entry is None:
                try:
                    return (yield from self._send_put(name, fields, fence))
                except PreconditionError as error:
                    exists = error
                entry = yield from self._find(
                    name["namespace"], name["key"], Tier(name["memory_type"]), session
                )
            if entry is None:
                # Another client has deleted the entry, or this client cannot find it.
                unfound += 1
                if unfound > 1:
                    raise EntryExistsError(
                        "an entry of this name exists, which this client cannot find; choose"
                        " another key"
                    ) from exists
                continue
            try:
                return (yield from self._update(entry.id, entry.version, _changes(fields), fence))
            except MemoryNotFoundError:
                continue
            except EntryExistsError:
                raise
            except MemoryConflictError as error:
                conflict = error
        raise _exhausted(UPDATE_ATTEMPTS, conflict)

    def _send_put(
        self,
        name: Mapping[str, str],
        fields: Mapping[str, Any],
        fence: int | None,
        *,
        version: int | None = None,
        absent: bool = False,
    ) -> RequestGenerator[MemoryEntry]:
        """Sends one PUT, with an idempotency key: repeated after a lost response, it runs once."""
        body = {**name, **fields}
        task_id = self._state.task_id
        full = self._state.versions.full_namespace(name["namespace"])
        self._state.reads.drop(full, name["key"])
        if version is None and name["memory_type"] == Tier.WORKING and task_id is not None:
            body.setdefault("scope", {"task_id": task_id})
        request = Request(
            operation="put_entry",
            body=body,
            if_match=version,
            if_none_match="*" if absent else None,
            fencing_token=fence,
        )
        try:
            entry = yield from ask(request, MemoryEntry)
        except EntryExistsError as error:
            self._notice(error)
            raise
        self._wrote(entry, created=entry.version == 1)
        return entry

    def _known(
        self, namespace: str, key: str, memory_type: MemoryType | None, session: str | None
    ) -> KnownVersion | None:
        """Returns what the client knows of the entry of a name and a session."""
        known = self._state.versions.find(namespace, key, memory_type)
        return known if known is not None and self._is_in(known.session_id, session) else None

    def _is_in(self, named: str | None, session: str | None) -> bool:
        """Whether an entry of a session is in the one that a write names, or in the client's own
        if it names none."""
        return named == session or (session is None and named == self._state.session)

    def _find(
        self, namespace: str, key: str, memory_type: MemoryType | None, session: str | None
    ) -> RequestGenerator[MemoryEntry | None]:
        """Returns the entry that a write of this name would replace, without recording it as
        seen."""
        if session is None:
            entry = yield from self._look_up(namespace, key, memory_type)
            if entry is None or not self._is_own(entry):
                return None
            return entry if self._is_in(entry.scope.session_id, None) else None
        wanted = FilterArguments(
            namespace=namespace, key=key, memory_type=memory_type, session_id=session
        )
        params = yield from self._parameters(wanted, SAME_NAME, 0)
        page = yield from self._fetch(params)
        full = self._state.versions.full_namespace(namespace)
        found = [one for one in page if one.namespace == full and self._is_own(one)]
        return min(found, key=self._breadth, default=None)

    def _pauses(self, attempts: int) -> Iterator[float]:
        """Yields the seconds before each attempt; the first has none."""
        yield 0.0
        yield from islice(backoff(_FIRST_WAIT, _LONGEST_WAIT, self._jitter), max(attempts - 1, 0))


def _changes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of an update by id. A scope that only names the session is a part of the
    name, and an update would replace the whole scope by it."""
    changes = dict(fields)
    scope = msgspec.to_builtins(changes.get("scope") or {})
    if not (scope.get("task_id") or scope.get("intent_id")):
        changes.pop("scope", None)
    return changes


def _with_advice(conflict: MemoryConflictError) -> MemoryConflictError:
    """The same conflict with what the caller of `put` can do."""
    return MemoryConflictError(
        "the entry has changed since this client has seen it; `update(namespace, key, function)`"
        " computes the value again, and `version` replaces the version that you name",
        current=conflict.current,
        current_version=conflict.current_version,
    )


def _wait(seconds: float) -> RequestGenerator[None]:
    if seconds:
        yield Pause(seconds)


def _exhausted(attempts: int, last: MemoryConflictError | None) -> MemoryConflictError:
    """The error after the last attempt, with the entry of the last conflict."""
    return MemoryConflictError(
        f"the entry was changed by others during each of {attempts} attempts; try again later, or"
        " with more `attempts`",
        current=None if last is None else last.current,
        current_version=None if last is None else last.current_version,
    )
