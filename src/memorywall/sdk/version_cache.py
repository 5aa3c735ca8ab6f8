"""The versions of entries that a client has seen (RFC-0015 "SDK Semantics").

An entry counts as seen only if the caller received it: as the result of a get, a query or an own
write. The current entry in a conflict does not count, because the program may not have read it: a
repeated write conflicts again until the caller passes the merged version as `version=`. So no
unseen version is ever overwritten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from memorywall.records.forks import FORK_LOCK
from memorywall.records.tier import Tier
from memorywall.sdk.filters import checked_name
from memorywall.sdk.models import MemoryEntry

MOST_TRACKED = 4_096
Name = tuple[str, str, str]
_TIERS = tuple(Tier)


class KnownVersion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry that a client knows.

    version: the seen version, or None if only its existence is known
    session_id: the session of the entry, which is a part of its name on the server
    doubtful: whether an own deletion by filter may have removed the entry since
    """

    id: str
    memory_type: str
    version: int | None
    session_id: str | None = None
    doubtful: bool = False


class VersionCache:
    """A bounded cache of names, ids and versions with least-recently-used eviction.

    Safe to use from several threads. The cache belongs to the client and not to a thread: threads
    that change one entry through one client should pass the version that they read as `version=`.
    """

    def __init__(self, most: int = MOST_TRACKED) -> None:
        self._most = most
        self._known: OrderedDict[Name, tuple[KnownVersion, int]] = OrderedDict()
        self._names: dict[str, Name] = {}
        self._doubts = 0
        self.subject: str | None = None
        """The people that the client is bound to, as in `X-Subject`: the server prefixes the
        namespaces of one person."""

    def __len__(self) -> int:
        return len(self._known)

    def full_namespace(self, namespace: str) -> str:
        """Returns the server's name of a namespace that a caller has named. Raises ValidationError
        for a namespace that is no text."""
        checked_name("namespace", namespace)
        if self.subject is None or "," in self.subject:
            return namespace
        if namespace.startswith(("shared/", f"user/{self.subject}/")):
            return namespace
        return f"user/{self.subject}/{namespace}"

    def saw(self, entry: MemoryEntry) -> None:
        """Records that the caller has received this entry."""
        self.saw_all((entry,))

    def saw_all(self, entries: Iterable[MemoryEntry]) -> None:
        """Records that the caller has received these entries."""
        with FORK_LOCK:
            known, doubts = self._known, self._doubts
            for entry in entries:
                version = entry.version
                name = (entry.namespace, entry.key, entry.memory_type)
                held = known.get(name)
                if held is not None:
                    seen, doubted = held
                    # Replies may overtake each other between threads; versions only grow.
                    if seen.id == entry.id and seen.version is not None and seen.version >= version:
                        if doubted == doubts:
                            known.move_to_end(name)
                            continue
                        version = seen.version
                self._put(name, entry, version)

    def noticed(self, entry: MemoryEntry) -> None:
        """Records that this entry exists and that the caller has not read it through this
        client."""
        with FORK_LOCK:
            name = _name(entry)
            held = self._known.get(name)
            if held is None or held[0].id != entry.id:
                self._put(name, entry, None)

    def find(self, namespace: str, key: str, memory_type: str | None) -> KnownVersion | None:
        """Returns the known entry of a name; without a tier, in the narrowest tier. Raises
        ValidationError for a name that is no text."""
        checked_name("key", key)
        with FORK_LOCK:
            for tier in _tiers(memory_type):
                name = (self.full_namespace(namespace), key, tier)
                if (held := self._known.get(name)) is not None:
                    self._known.move_to_end(name)
                    known, doubts = held
                    return replace(known, doubtful=doubts < self._doubts)
        return None

    def name_of(self, entry_id: str) -> Name | None:
        """The namespace, key and tier of an entry that the client knows of."""
        with FORK_LOCK:
            return self._names.get(entry_id)

    def forget(self, namespace: str, key: str, memory_type: str | None) -> None:
        """Records that there is no such entry, in one tier or in any."""
        with FORK_LOCK:
            for tier in _tiers(memory_type):
                self._drop((self.full_namespace(namespace), key, tier))

    def forget_narrower(self, entry: MemoryEntry) -> None:
        """Records that no narrower tier has an entry of this entry's name."""
        with FORK_LOCK:
            for tier in _TIERS[: _TIERS.index(entry.memory_type)]:
                if (name := (entry.namespace, entry.key, tier)) in self._known:
                    self._drop(name)

    def forget_id(self, entry_id: str) -> None:
        """Records that there is no entry with this id."""
        with FORK_LOCK:
            if (name := self._names.get(entry_id)) is not None:
                self._drop(name)

    def doubt(self) -> None:
        """Records that any known entry may have been deleted."""
        with FORK_LOCK:
            self._doubts += 1

    def _put(self, name: Name, entry: MemoryEntry, version: int | None) -> None:
        self._drop(name)
        known = KnownVersion(
            id=entry.id,
            memory_type=entry.memory_type,
            version=version,
            session_id=entry.scope.session_id,
        )
        self._known[name] = (known, self._doubts)
        self._names[entry.id] = name
        while len(self._known) > self._most:
            self._drop(next(iter(self._known)))

    def _drop(self, name: Name) -> None:
        if (held := self._known.pop(name, None)) is not None:
            self._names.pop(held[0].id, None)


def _name(entry: MemoryEntry) -> Name:
    return (entry.namespace, entry.key, entry.memory_type)


def _tiers(memory_type: str | None) -> tuple[str, ...]:
    return _TIERS if memory_type is None else (str(memory_type),)
