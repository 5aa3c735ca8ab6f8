"""Finds the entry of a name, or of an id, for reads and writes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import UNSET

from memorywall.records.errors import MemoryNotFoundError, RequestError
from memorywall.records.tier import Tier
from memorywall.sdk import retry
from memorywall.sdk.effects import Invoke, Now, Request, RequestGenerator, Response
from memorywall.sdk.errors import decode
from memorywall.sdk.filters import (
    SHARED_TYPES,
    FilterArguments,
    MemoryType,
    checked_name,
    parameters,
)
from memorywall.sdk.models import DecodedName, DecodedPage, EntryPage, MemoryEntry
from memorywall.sdk.read_cache import BY_ID
from memorywall.sdk.retry import call
from memorywall.sdk.search import SearchCore
from memorywall.wire.entries import EvictionWarning, ShadowedEntry, name_tag

SAME_NAME = 1_000
"""The most entries of a name that a lookup compares."""


PRESENT: Mapping[str, Any] = MappingProxyType({})
"""The parameters of a read of the present version, of any schemas."""


class LookupCore(SearchCore):
    """Lookups of one entry, as request generators. Only `_read` and `_read_by_id` use kept reads: a
    write needs the present version."""

    _keeps_reads = True

    def _read(
        self, namespace: str, key: str, memory_type: MemoryType | None
    ) -> RequestGenerator[MemoryEntry | None]:
        """Returns the entry of this name, possibly as it was up to the `max_age` of its namespace
        ago."""
        checked_name("key", key)
        reads = self._state.reads
        place = (self._state.versions.full_namespace(namespace), key)
        if not (self._keeps_reads and self._state.finds_by_name):
            return (yield from self._look_up(namespace, key, memory_type))
        way = (None if memory_type is None else str(memory_type), self._state.task_id)
        kept, ticket = reads.find(place, way), reads.ticket
        max_age, now, tag = reads.max_age(place[0]), 0.0, None
        if max_age is not None:
            now = yield Now()
            tag = None if kept is None else kept.tag
        if kept is not None:
            if max_age is not None and now - kept.read_at < max_age:
                return kept.entry()
            if kept.is_current is not None and (yield Invoke(kept.is_current, None)):
                return kept.entry()
        response = yield from self._ask_by_name(namespace, key, memory_type, tag, keeps=True)
        if response.status == 304 and kept is not None:
            reads.renew(place, way, kept, now, ticket)
            return kept.entry()
        try:
            found = _named(response)
        except (MemoryNotFoundError, RequestError):
            return (yield from self._search_instead(namespace, key, memory_type))
        entry = found.entry
        if entry is UNSET:
            return (yield from self._search_instead(namespace, key, memory_type))
        if entry is not None:
            yield from self._learn_agent((entry,))
            if max_age is not None or response.is_current is not None:
                tag = name_tag(entry, found.shadows)
                reads.keep(place, way, entry, tag, now, ticket, response.is_current)
        elif kept is not None:
            reads.drop(*place)
        return entry

    def _read_by_id(self, entry_id: str, asked: Mapping[str, Any]) -> RequestGenerator[MemoryEntry]:
        """Returns an entry, possibly as it was up to the `max_age` of its namespace ago.

        asked: which version; an earlier one is never kept
        """
        reads = self._state.reads
        is_present = all(given is None for given in asked.values())
        known = reads.find_id(entry_id) if is_present else None
        ticket, now = reads.ticket, 0.0
        if reads.is_used and is_present:
            now = yield Now()
        tag = None
        if known is not None:
            place, kept = known
            max_age = reads.max_age(place[0])
            entry = kept.entry()
            if max_age is not None and now - kept.read_at < max_age:
                return entry
            tag = f'"{entry.version}"'
        request = Request(
            operation="get_entry",
            path={"entry_id": entry_id},
            query=retry.texts(asked),
            if_none_match=tag,
        )
        response = yield from retry.send(request)
        if response.status >= 400:
            reads.drop_id(entry_id)
        if response.status != 304 or known is None:
            entry = decode(response, MemoryEntry)
        if is_present and reads.max_age(entry.namespace) is not None:
            place = (entry.namespace, entry.key)
            reads.keep(place, BY_ID, entry, str(entry.version), now, ticket)
        return entry

    def _look_up(
        self,
        namespace: str,
        key: str,
        memory_type: MemoryType | None,
        asked: Mapping[str, Any] = PRESENT,
    ) -> RequestGenerator[MemoryEntry | None]:
        """Returns the entry of this name in the narrowest tier, without recording it as seen.

        asked: which version, and of which schemas
        """
        checked_name("namespace", namespace)
        checked_name("key", key)
        if self._state.finds_by_name:
            try:
                response = yield from self._ask_by_name(namespace, key, memory_type, asked=asked)
                entry = _named(response).entry
            except (MemoryNotFoundError, RequestError):
                # An older server reads the path as an entry's id. Other refusals occur below as
                # well. The query below does not ask for a version.
                if asked:
                    raise
                entry = UNSET
            if entry is not UNSET:
                yield from self._learn_agent(() if entry is None else (entry,))
                return entry
        return (yield from self._search_instead(namespace, key, memory_type))

    def _search_instead(
        self, namespace: str, key: str, memory_type: MemoryType | None
    ) -> RequestGenerator[MemoryEntry | None]:
        """Finds the entry of a name with a query, and remembers that the server needs that."""
        entry = yield from self._search_for(namespace, key, memory_type)
        self._state.finds_by_name = False
        return entry

    def _ask_by_name(
        self,
        namespace: str,
        key: str,
        memory_type: MemoryType | None,
        tag: str | None = None,
        asked: Mapping[str, Any] = PRESENT,
        *,
        keeps: bool = False,
    ) -> RequestGenerator[Response]:
        """Requests the entry of a name.

        tag: the entity tag of a kept read; the response is 304 if it is current
        keeps: see `Request.keeps`
        """
        query = {
            **asked,
            "namespace": namespace,
            "key": key,
            "memory_type": memory_type,
            "scope.task_id": self._state.task_id,
        }
        condition = None if tag is None else f'"{tag}"'
        request = Request(
            operation="find_entry",
            query=retry.texts(query),
            if_none_match=condition,
            keeps=keeps,
        )
        return (yield from retry.send(request))

    def _search_for(
        self, namespace: str, key: str, memory_type: MemoryType | None
    ) -> RequestGenerator[MemoryEntry | None]:
        """Finds the entry with a query, for servers without a lookup by name."""
        wanted = FilterArguments(namespace=namespace, key=key)
        if memory_type in SHARED_TYPES:
            wanted["memory_type"] = memory_type
        params = parameters(wanted)
        full = self._state.versions.full_namespace(namespace)
        page = yield from self._fetch({**params, "limit": str(SAME_NAME)})
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

    def _fetch(self, params: Mapping[str, str]) -> RequestGenerator[EntryPage]:
        page = yield from call("query_entries", DecodedPage, query=params)
        yield from self._learn_agent(page.entries)
        return EntryPage(
            page.entries,
            total=page.total,
            limit=page.limit,
            offset=page.offset,
            next_cursor=page.next_cursor,
        )


def _named(response: Response) -> DecodedName:
    """Returns the result of a lookup by name, and warns of entries that the entry hides."""
    found = decode(response, DecodedName)
    if found.entry and found.shadows:
        warn_of_shadows(found.entry, found.shadows)
    return found


_log = logging.getLogger("memorywall.memory")


def warn_of_evictions(warnings: Iterable[EvictionWarning]) -> None:
    """Logs what a write has evicted."""
    for one in warnings:
        _log.warning("%s: %s", one.detail, ", ".join(entry.id for entry in one.entries))


def warn_of_shadows(entry: MemoryEntry, shadows: Iterable[ShadowedEntry]) -> None:
    """Logs the tiers in which an entry hides another one of its name, and what is known of it."""
    tiers = ", ".join(
        one.memory_type
        + (" (curated by a person)" if one.authority == "human_curated" else "")
        + (" (another value)" if one.conflicts else "")
        for one in shadows
    )
    _log.warning(
        "%s/%s is the %s entry; it hides an entry of the same name in: %s. Pass memory_type to"
        " choose.",
        entry.namespace,
        entry.key,
        entry.memory_type,
        tiers,
    )
