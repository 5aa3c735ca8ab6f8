"""Finds the entry of a name."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET

from memorywall.records.errors import MemoryNotFoundError, RequestError
from memorywall.records.tier import Tier
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.filters import SHARED_TYPES, FilterArguments, MemoryType, parameters
from memorywall.sdk.models import DecodedName, DecodedPage, EntryPage, MemoryEntry
from memorywall.sdk.recall import RecallCore
from memorywall.sdk.retry import call
from memorywall.sdk.shadows import warn_of_shadows

_SAME_NAME = 1_000


class LookupCore(RecallCore):
    """The lookup of entries by name, as request generators."""

    def _look_up(
        self,
        namespace: str,
        key: str,
        memory_type: MemoryType | None,
        schema_version: int | None = None,
    ) -> RequestGenerator[MemoryEntry | None]:
        """Returns the entry of this name in the narrowest tier, without recording it as seen."""
        if self._state.finds_by_name:
            query = {
                "namespace": namespace,
                "key": key,
                "memory_type": memory_type,
                "scope.task_id": self._state.task_id,
                "schema_version": schema_version,
            }
            try:
                found = yield from call("find_entry", DecodedName, query=query)
                entry = found.entry
                if entry and found.shadows:
                    warn_of_shadows(entry, found.shadows)
            except (MemoryNotFoundError, RequestError):
                # An older server reads the path as an entry's id. Other refusals occur below as
                # well. The query below does not ask for a version of the schemas.
                if schema_version is not None:
                    raise
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

    def _fetch(self, params: Mapping[str, str]) -> RequestGenerator[EntryPage]:
        page = yield from call("query_entries", DecodedPage, query=params)
        yield from self._learn_agent(page.entries)
        return EntryPage(page.entries, total=page.total, limit=page.limit, offset=page.offset)
