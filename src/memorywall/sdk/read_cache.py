"""Reads that a client may repeat without a request, for namespaces that the program has named."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from memorywall.records.forks import FORK_LOCK
from memorywall.sdk.models import MemoryEntry

MOST_KEPT = 4_096
"""The most names whose reads a client keeps."""
Place: TypeAlias = tuple[str, str]
"""The namespace and key of an entry, with the server's name of the namespace."""
Way: TypeAlias = tuple[str | None, str | None]
"""The other parameters of a read by name: the tier and the task of the request."""
BY_ID: Way = ("", None)
"""The way of a read by id."""


class CachedRead(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A read of an entry.

    kept: the entry as it was read
    tag: its entity tag for this way of reading it
    read_at: the time of the request, in seconds of the driver's clock
    is_current: see `Response.is_current`
    """

    kept: MemoryEntry
    tag: str
    read_at: float
    is_current: Callable[[None], bool] | None = None

    def entry(self) -> MemoryEntry:
        """Returns the entry with a value of its own, so that no caller changes another one's."""
        return replace(self.kept, value=_copy(self.kept.value))


class ReadCache:
    """A bounded cache of reads with least-recently-used eviction, safe to use from several threads.

    A write of the client and a change that it follows drop all reads of the entry, and of its name.
    A read that began before that is not kept: see `ticket`.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._ages: dict[str, float] = {}
        self._kept: OrderedDict[Place, dict[Way, CachedRead]] = OrderedDict()
        self._places: dict[str, Place] = {}
        self.ticket = 0
        """Changes with every drop. A read is kept only if it has not changed since its request."""

    def allow(self, namespace: str, max_age: float) -> None:
        """Keeps the reads of a namespace for `max_age` seconds; 0 ends that."""
        with FORK_LOCK:
            self._ages.pop(namespace, None)
            if max_age > 0:
                self._ages[namespace] = max_age
        self.clear()

    @property
    def is_used(self) -> bool:
        """Returns whether the reads of any namespace are kept."""
        return bool(self._ages)

    def max_age(self, namespace: str) -> float | None:
        """Returns the seconds for which reads of a namespace are kept, None if they are not."""
        return self._ages.get(namespace)

    def find(self, place: Place, way: Way) -> CachedRead | None:
        """Returns the kept read of an entry by name."""
        with FORK_LOCK:
            return self._kept.get(place, {}).get(way)

    def find_id(self, entry_id: str) -> tuple[Place, CachedRead] | None:
        """Returns the latest kept read of an entry, by whatever way, and its place, if the reads of
        its namespace are kept for a time."""
        with FORK_LOCK:
            place = self._places.get(entry_id)
            if place is None or place[0] not in self._ages:
                return None
            reads = [one for one in self._kept[place].values() if one.kept.id == entry_id]
            return (place, max(reads, key=lambda one: one.read_at)) if reads else None

    def keep(
        self,
        place: Place,
        way: Way,
        entry: MemoryEntry,
        tag: str,
        read_at: float,
        ticket: int,
        is_current: Callable[[None], bool] | None = None,
    ) -> None:
        """Keeps a read.

        ticket: `ReadCache.ticket` before the request
        """
        own = replace(entry, value=_copy(entry.value))
        read = CachedRead(kept=own, tag=tag, read_at=read_at, is_current=is_current)
        self._put(place, way, read, ticket)

    def renew(self, place: Place, way: Way, kept: CachedRead, read_at: float, ticket: int) -> None:
        """Keeps a read that the server has found current."""
        self._put(place, way, replace(kept, read_at=read_at), ticket)

    def drop(self, namespace: str, key: str) -> None:
        """Drops the reads of a name."""
        with FORK_LOCK:
            self.ticket += 1
            self._drop((namespace, key))

    def drop_id(self, entry_id: str) -> None:
        """Drops the reads of an entry."""
        with FORK_LOCK:
            self.ticket += 1
            if (place := self._places.get(entry_id)) is not None:
                self._drop(place)

    def clear(self) -> None:
        """Drops all reads."""
        with FORK_LOCK:
            self.ticket += 1
            self._kept.clear()
            self._places.clear()

    def _put(self, place: Place, way: Way, kept: CachedRead, ticket: int) -> None:
        with FORK_LOCK:
            if ticket != self.ticket:
                return
            former = self._kept.get(place, {}).get(way)
            if former is not None and former.kept.id != kept.kept.id:
                self._drop(place)
            self._kept.setdefault(place, {})[way] = kept
            self._kept.move_to_end(place)
            self._places[kept.kept.id] = place
            while len(self._kept) > self._most:
                self._drop(next(iter(self._kept)))

    def _drop(self, place: Place) -> None:
        for read in self._kept.pop(place, {}).values():
            self._places.pop(read.kept.id, None)


def _copy(node: Any) -> Any:
    """Copies a value that was decoded from JSON, in a fraction of the time of `copy.deepcopy`."""
    if isinstance(node, dict):
        return {name: _copy(one) for name, one in node.items()}
    return [_copy(one) for one in node] if isinstance(node, list) else node
