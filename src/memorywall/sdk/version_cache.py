"""Which version of each entry a client has seen (RFC-0015 "SDK Semantics").

Only what the caller was shown counts as seen: what a get or a query returned, and what an own
write made. A conflict shows the caller the current entry but does not count, for the program may
not have looked: a retry conflicts again until the caller says with `version=` which state it has
merged. So nothing unseen is ever overwritten.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from memorywall.records.tier import Tier
from memorywall.sdk.models import MemoryEntry

MOST_TRACKED = 4_096
Name = tuple[str, str, str]
_TIERS = tuple(Tier)


class KnownVersion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry a client knows of.

    version: the one it has seen, or None when it only knows that the entry is there
    doubtful: whether an own deletion by filter may have removed it since
    """

    id: str
    memory_type: str
    version: int | None
    doubtful: bool = False


class VersionCache:
    """A bounded memory of names, ids and versions; the least recently used is forgotten first.

    Safe to use from several threads. It is the client's, not the thread's: threads that change
    one entry through one client each pass the version of what they read as `version=`.
    """

    def __init__(self, most: int = MOST_TRACKED) -> None:
        self._most = most
        self._known: OrderedDict[Name, tuple[KnownVersion, int]] = OrderedDict()
        self._names: dict[str, Name] = {}
        self._doubts = 0
        self._lock = threading.Lock()
        self.subject: str | None = None
        """The person the client is bound to: the server puts namespaces under theirs."""

    def __len__(self) -> int:
        return len(self._known)

    def full_namespace(self, namespace: str) -> str:
        """The namespace as the server names it, from one that a caller has named."""
        if self.subject is None or namespace.startswith(("shared/", f"user/{self.subject}/")):
            return namespace
        return f"user/{self.subject}/{namespace}"

    def saw(self, entry: MemoryEntry) -> None:
        """The caller has been shown this entry."""
        self.saw_all((entry,))

    def saw_all(self, entries: Iterable[MemoryEntry]) -> None:
        """The caller has been shown these entries."""
        with self._lock:
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
        """This entry exists, but the caller has not read it through this client."""
        with self._lock:
            name = _name(entry)
            held = self._known.get(name)
            if held is None or held[0].id != entry.id:
                self._put(name, entry, None)

    def find(self, namespace: str, key: str, memory_type: str | None) -> KnownVersion | None:
        """What is known under a name; without a tier, in the narrowest one where anything is."""
        with self._lock:
            for tier in _tiers(memory_type):
                name = (self.full_namespace(namespace), key, tier)
                if (held := self._known.get(name)) is not None:
                    self._known.move_to_end(name)
                    known, doubts = held
                    return replace(known, doubtful=doubts < self._doubts)
        return None

    def forget(self, namespace: str, key: str, memory_type: str | None) -> None:
        """There is no such entry, in one tier or in any."""
        with self._lock:
            for tier in _tiers(memory_type):
                self._drop((self.full_namespace(namespace), key, tier))

    def forget_narrower(self, entry: MemoryEntry) -> None:
        """There is no entry of this one's name in a narrower tier."""
        with self._lock:
            for tier in _TIERS[: _TIERS.index(entry.memory_type)]:
                if (name := (entry.namespace, entry.key, tier)) in self._known:
                    self._drop(name)

    def forget_id(self, entry_id: str) -> None:
        """There is no entry with this id."""
        with self._lock:
            if (name := self._names.get(entry_id)) is not None:
                self._drop(name)

    def doubt(self) -> None:
        """Any of the entries known so far may be gone."""
        with self._lock:
            self._doubts += 1

    def _put(self, name: Name, entry: MemoryEntry, version: int | None) -> None:
        self._drop(name)
        known = KnownVersion(id=entry.id, memory_type=entry.memory_type, version=version)
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
