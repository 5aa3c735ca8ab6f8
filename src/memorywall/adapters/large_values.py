"""Values of any size: what is too large for an entry goes to an attachment of the entry.

An entry is written last, at the version that was read, and the server removes the attachment of the
version before in the same transaction. So a reader finds the old value or the new one, whenever a
writer stops.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias, Unpack

import msgspec
from msgspec.structs import replace

from memorywall.exceptions import (
    EntryExistsError,
    MemoryConflictError,
    MemoryNotFoundError,
    MemorywallError,
    ResourceNotFoundError,
    RuleError,
    ValidationError,
)
from memorywall.records.attached_members import (
    ATTACHED,
    FILENAME,
    AttachedMember,
    AttachedMembers,
    attached_of,
)
from memorywall.records.entry import VALUE_LIMIT
from memorywall.records.tier import Tier
from memorywall.sdk.corrections import CorrectionResult
from memorywall.sdk.effects import Pause
from memorywall.sdk.effects import RequestGenerator as Script
from memorywall.sdk.errors import MemoryTransportError
from memorywall.sdk.fields import WriteOptions
from memorywall.sdk.memory import MemoryCore
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.put import UPDATE_ATTEMPTS
from memorywall.sdk.retry import encode

Value: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Value], Mapping[str, Any]]
_STAYING = 16_384
"""The bytes that the members which are not attached may have."""
_BEGINNINGS = (24_000, 8_000, 0)
"""The characters of the beginnings of all attached members; the first number that fits."""
_READS = 3
_WHOLE = "value"
_encode = msgspec.json.encode


class LargeValues:
    """Writes and reads entries of a memory with values of any size, as request generators."""

    def __init__(self, memory: MemoryCore) -> None:
        self._memory = memory

    def create(
        self,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        tier: Tier,
        **options: Unpack[WriteOptions],
    ) -> Script[MemoryEntry]:
        """Creates an entry. Raises EntryExistsError, and the errors of `memory.put`."""
        try:
            return (yield from self._write(None, namespace, key, value, tier, options))
        except EntryExistsError:
            entry = yield from self._memory._find(namespace, key, tier, None)
            if entry is None or not is_unfinished(entry):
                raise
            # A writer has stopped before the value was stored.
            return (yield from self._write(entry, namespace, key, value, tier, options))

    def put(
        self,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        tier: Tier,
        **options: Unpack[WriteOptions],
    ) -> Script[MemoryEntry]:
        """Creates an entry or replaces its value, also one that has changed meanwhile."""
        if not is_large(value):
            plain = dict(value)
            return self._memory.update(namespace, key, lambda _: plain, tier, default={}, **options)

        def make(_: MemoryEntry | None) -> Script[Mapping[str, Any]]:
            yield from ()
            return value

        return self._write_repeatedly(namespace, key, make, tier, options)

    def update(
        self,
        namespace: str,
        key: str,
        change: Change,
        tier: Tier,
        *,
        default: Mapping[str, Any] | None = None,
        **options: Unpack[WriteOptions],
    ) -> Script[MemoryEntry]:
        """Changes the value of an entry with a function and returns the entry with its whole value,
        as `memory.update` does."""

        def change_small(value: Value) -> Mapping[str, Any]:
            changed = value if ATTACHED in value else change(value)
            if ATTACHED in value or is_large(changed):
                raise _LargeError
            return changed

        try:
            return (
                yield from self._memory.update(
                    namespace, key, change_small, tier, default=default, **options
                )
            )
        except _LargeError:
            pass

        def make(entry: MemoryEntry | None) -> Script[Mapping[str, Any]]:
            whole = None if entry is None else (yield from self.read(entry))
            if whole is None and default is None:
                raise MemoryNotFoundError("there is no entry to update; give `default` to make one")
            return change(copy.deepcopy(dict((default or {}) if whole is None else whole.value)))

        return (yield from self._write_repeatedly(namespace, key, make, tier, options))

    def correct(
        self, entry_id: str, right: str | Mapping[str, Any], reason: str
    ) -> Script[CorrectionResult]:
        """Replaces the wrong value of an entry by a large one; see `memory.correct`."""
        entry = yield from self._memory.get_by_id(entry_id)
        value: Mapping[str, Any]
        if isinstance(right, str):
            old = {name: member for name, member in entry.value.items() if name != ATTACHED}
            name = "text" if isinstance(old.get("text"), str) else "content"
            if not isinstance(old.get(name), str):
                raise ValidationError("the memory has no text; give its right value")
            value = {**old, name: right}
        else:
            value = right

        def write(stored: Value) -> Script[CorrectionResult]:
            return self._memory.correct(entry.id, stored, reason=reason, version=entry.version)

        corrected: CorrectionResult = yield from self.attach(entry, value, write)
        return corrected

    def attach(
        self, entry: MemoryEntry, value: Mapping[str, Any], write: Callable[[Value], Script[Any]]
    ) -> Script[Any]:
        """Attaches the large members of a value to an entry, and returns the result of the write
        that replaces the value of the entry.

        write: writes what the entry has of the value
        Raises ValueTooLargeError for more than an attachment may have, and the errors of `write`.
        """
        stored, content = _divide(value)
        files = self._memory.attachments
        made = yield from files.upload(entry.id, FILENAME, content, mime_type="application/json")
        try:
            attached = {**stored[ATTACHED], "attachment_id": made.id}
            return (yield from write({**stored, ATTACHED: attached}))
        except MemoryTransportError:
            # The value may be stored.
            raise
        except MemorywallError:
            with suppress(MemorywallError):
                yield from files.delete(entry.id, made.id)
            raise

    def read(self, entry: MemoryEntry) -> Script[MemoryEntry | None]:
        """Returns an entry as it was read with its whole value; None if it is not there any more,
        or not yet.

        Raises ResourceNotFoundError if what was attached has been deleted.
        """
        for _ in range(_READS):
            attached = attached_of(entry.value)
            if attached is None:
                return entry
            if not attached.attachment_id:
                return None
            try:
                content = yield from self._memory.attachments.download(
                    entry.id, attached.attachment_id
                )
                return replace(entry, value=_join(entry.value, attached, content))
            except MemoryNotFoundError:
                # Another write has replaced the value since it was read, or deleted the entry.
                self._memory._state.reads.drop_id(entry.id)
                try:
                    entry = yield from self._memory.get_by_id(entry.id)
                except MemoryNotFoundError:
                    return None
        raise ResourceNotFoundError(
            "the attachment with the rest of this value was deleted; write the value again"
        )

    def _write_repeatedly(
        self,
        namespace: str,
        key: str,
        make: Callable[[MemoryEntry | None], Script[Mapping[str, Any]]],
        tier: Tier,
        options: WriteOptions,
    ) -> Script[MemoryEntry]:
        """Writes what `make` makes of an entry, at the version that it was made of."""
        conflict: MemorywallError | None = None
        refused = 0
        for pause in self._memory._pauses(UPDATE_ATTEMPTS):
            if pause:
                yield Pause(pause)
            entry = yield from self._memory._find(namespace, key, tier, None)
            value = yield from make(entry)
            try:
                return (yield from self._write(entry, namespace, key, value, tier, options))
            except (MemoryConflictError, MemoryNotFoundError) as error:
                conflict = error
                refused += entry is None
                if refused > 1:
                    # The name is taken by an entry that this client cannot find.
                    break
        raise conflict or MemoryConflictError

    def _write(
        self,
        entry: MemoryEntry | None,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        tier: Tier,
        options: WriteOptions,
    ) -> Script[MemoryEntry]:
        """Creates an entry, or replaces it at its version. Returns it with its whole value."""
        memory = self._memory
        if not is_large(value):
            version = None if entry is None else entry.version
            return (
                yield from memory.put(
                    namespace, key, value, tier, version=version, if_absent=entry is None, **options
                )
            )
        is_new = entry is None
        if entry is None:
            unfinished, _ = _divide(value)
            entry = yield from memory.put(
                namespace, key, unfinished, tier, if_absent=True, **options
            )
            if entry.waits:
                with suppress(MemorywallError):
                    yield from memory.delete_by_id(entry.id)
                raise RuleError(
                    f"a value above {VALUE_LIMIT} bytes cannot wait for the decision of a person",
                    rule="admission",
                )

        def write(stored: Value, version: int = entry.version) -> Script[MemoryEntry]:
            return memory.put(namespace, key, stored, tier, version=version, **options)

        try:
            written: MemoryEntry = yield from self.attach(entry, value, write)
        except MemorywallError:
            if is_new:
                with suppress(MemorywallError):
                    yield from memory.delete_by_id(entry.id, version=entry.version)
            raise
        return written if written.waits else replace(written, value=dict(value))


def is_large(value: Mapping[str, Any]) -> bool:
    """Whether a value does not fit into an entry. What is no JSON does: its write says so. A value
    that uses the name of the mark does not."""
    try:
        return ATTACHED in value or len(_encode(value)) > VALUE_LIMIT
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False


def is_unfinished(entry: MemoryEntry) -> bool:
    """Whether an entry counts as absent, because its value is not stored yet."""
    attached = attached_of(entry.value) if ATTACHED in entry.value else None
    return attached is not None and not attached.attachment_id


class _LargeError(Exception):
    """The value of an entry is, or becomes, too large for it."""


def _divide(value: Mapping[str, Any]) -> tuple[Value, bytes]:
    """Returns what the entry has of a value, without the id of the attachment, and the content of
    the attachment."""
    forms = [(value, _choose(value)), ({_WHOLE: value}, [_WHOLE])]
    for given, chosen in forms[1:] if ATTACHED in value else forms:
        moved = {name: given[name] for name in chosen}
        texts = {name: _text(member) for name, member in moved.items()}
        for shown in _BEGINNINGS:
            beginnings = {name: text[: shown // len(chosen)] for name, text in texts.items()}
            attached = AttachedMembers(
                members={
                    name: AttachedMember(len(beginnings[name]), len(text.encode()))
                    for name, text in texts.items()
                },
                is_whole=given is not value,
            )
            stored = {**given, **beginnings, ATTACHED: msgspec.to_builtins(attached)}
            if len(_encode(stored)) <= VALUE_LIMIT:
                # Both are checked before anything is sent.
                encode(stored)
                return stored, encode(moved)
    raise AssertionError("the last form has one name")


def _choose(value: Mapping[str, Any]) -> list[str]:
    """Returns the names of the members to attach, the largest ones."""
    sizes = {name: len(_encode(member)) for name, member in value.items()}
    left, chosen = sum(sizes.values()), []
    for name in sorted(sizes, key=lambda one: -sizes[one]):
        if left <= _STAYING:
            break
        left -= sizes[name]
        chosen.append(name)
    return chosen or list(value)


def _join(stored: Mapping[str, Any], attached: AttachedMembers, content: bytes) -> Value:
    """Returns the whole value. A member that was changed since without the attachment stays."""
    value = {name: member for name, member in stored.items() if name != ATTACHED}
    for name, member in msgspec.json.decode(content).items():
        known = attached.members.get(name)
        if known is not None and value.get(name) == _text(member)[: known.shown]:
            value[name] = member
    return value[_WHOLE] if attached.is_whole and isinstance(value[_WHOLE], dict) else value


def _text(member: Any) -> str:
    return member if isinstance(member, str) else _encode(member).decode()
