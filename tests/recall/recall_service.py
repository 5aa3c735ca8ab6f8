"""A service for search tests: writers, their entries, and search results."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from memorywall.jobs.embed import EmbeddingJob
from memorywall.operations.entries import get
from memorywall.recall.augment_query import augment_query
from memorywall.recall.index import Index
from memorywall.recall.search import search
from memorywall.records.draft import EntryPatch, NewEntry
from memorywall.records.entry import Entry, Scope
from memorywall.records.errors import MemoryAccessError
from memorywall.records.filter import EntryFilter
from memorywall.records.namespace import Access, Grant
from memorywall.records.principal import Permission, Principal, PrincipalKind
from memorywall.records.recall import AugmentedQuery, SearchPage, SearchSpec
from memorywall.records.tier import Tier
from memorywall.service.administration.namespace_permissions import set_permissions
from memorywall.service.administration.tenants import create_tenant
from memorywall.service.entries.create import create
from memorywall.service.entries.update import delete, update
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.operation_runner import OperationTransactions, run_read, run_write
from memorywall.settings import DEFAULT_TENANT
from memorywall.wire.operations import OPERATIONS
from tests.support.embedder import WordEmbedder
from tests.support.service import TestClock, open_service


def agent(name: str, tenant: str = DEFAULT_TENANT) -> Principal:
    """An agent that may read, write and manage what it founds."""
    return Principal(
        tenant=tenant,
        id=name,
        kind=PrincipalKind.AGENT,
        permissions=frozenset({Permission.READ, Permission.WRITE, Permission.ADMIN}),
    )


class RecallService:
    """A service with an index, and what tests do with the two."""

    def __init__(
        self, service: SharedServices, clock: TestClock, embedder: WordEmbedder | None = None
    ) -> None:
        self.services = service
        self.clock = clock
        self.embedder = embedder
        self.index = Index(service, embedder)
        self.embedding = (
            None if embedder is None else EmbeddingJob(service, embedder, self.index.fields)
        )
        self._written = 0

    async def write(
        self,
        who: Principal,
        value: dict[str, Any] | str,
        tier: Tier = Tier.EPISODIC,
        namespace: str = "notes",
        **fields: Any,
    ) -> Entry:
        """Makes an entry. A value that is a text stands for one with nothing else in it."""
        self._written += 1
        fields.setdefault("key", f"k{self._written}")
        if "scope" in fields:
            fields["scope"] = Scope(**fields["scope"])
        draft = NewEntry(
            namespace=namespace,
            value={"text": value} if isinstance(value, str) else value,
            memory_type=tier,
            **fields,
        )
        return await run_write(self.services, who, lambda context: create(context, draft))

    async def change(self, who: Principal, entry: Entry, **fields: Any) -> Entry:
        """Changes an entry at the version it has in `entry`."""
        if "scope" in fields:
            fields["scope"] = Scope(**fields["scope"])
        change = EntryPatch(**fields)
        return await run_write(
            self.services, who, lambda context: update(context, entry.id, entry.version, change)
        )

    async def remove(self, who: Principal, entry: Entry) -> None:
        """Deletes an entry."""
        await run_write(self.services, who, lambda context: delete(context, entry.id))

    async def get(self, who: Principal, entry: Entry) -> Entry:
        """Reads an entry, as a use of it."""
        return await run_read(self.services, who, lambda context: get(context, entry.id))

    async def can_get(self, who: Principal, entry: Entry) -> bool:
        """Whether an agent may read an entry that exists."""
        try:
            await self.get(who, entry)
        except MemoryAccessError:
            return False
        return True

    async def open_namespace(self, who: Principal, name: str, default: str, **grants: str) -> None:
        """Sets what a namespace allows everybody, and what some; `who` goes on to manage it."""
        grants.setdefault(who.id, "admin")
        allow = [Grant(agent=one, access=Access(level)) for one, level in grants.items()]
        await run_write(
            self.services,
            who,
            lambda context: set_permissions(context, name, default=Access(default), allow=allow),
        )

    async def tenant(self, name: str) -> None:
        """Makes a tenant."""
        await create_tenant(self.services, name)

    async def search(self, who: Principal, query: str, **asked: Any) -> SearchPage:
        """Searches; conditions of `EntryFilter` and of `SearchSpec` by their names."""
        return await search(self.index, self._session(who), search_spec(who, query, **asked))

    async def reshape(self, who: Principal, query: str, **asked: Any) -> AugmentedQuery:
        """Reshapes a question."""
        return await augment_query(self.index, self._session(who), query, **asked)

    def _session(self, who: Principal) -> OperationTransactions:
        call = OperationCall(operation=_SEARCH, principal=who)
        return OperationTransactions(self.services, call, self.index)

    async def ids(self, who: Principal, query: str, **asked: Any) -> list[str]:
        """The ids of what is found, best first."""
        return [hit.entry.id for hit in (await self.search(who, query, **asked)).hits]

    async def can_find(self, who: Principal, entry: Entry, query: str, **asked: Any) -> bool:
        """Whether an entry is among what is found."""
        return entry.id in await self.ids(who, query, limit=100, **asked)

    async def keys(self, who: Principal, query: str, **asked: Any) -> set[str]:
        """The keys of what is found."""
        found = await self.search(who, query, limit=100, **asked)
        return {hit.entry.key for hit in found.hits}

    async def embed(self) -> int:
        """Embeds all that is left; returns how many entries were embedded."""
        assert self.embedding is not None
        return await self.embedding.embed_some()

    def anew(self) -> RecallService:
        """The same service with the empty caches of a new process."""
        return RecallService(self.services, self.clock, self.embedder)

    def close(self) -> None:
        """Lets go of what is held in memory."""
        if self.embedding is not None:
            self.embedding.close()
        self.index.close()


_SEARCH = next(one for one in OPERATIONS if one.name == "search_entries")
_OF_FILTER = frozenset(EntryFilter.__struct_fields__)


def search_spec(who: Principal, query: str, **asked: Any) -> SearchSpec:
    """A search, its conditions by their names."""
    wanted = {name: asked.pop(name) for name in list(asked) if name in _OF_FILTER - {"limit"}}
    return SearchSpec(query=query, wanted=EntryFilter(tenant=who.tenant, **wanted), **asked)


def told(found: SearchPage) -> bytes:
    """Everything a search says, as bytes that compare."""
    return msgspec.json.encode(found)


@asynccontextmanager
async def open_recall(
    directory: Path, embedder: WordEmbedder | None = None, **settings: Any
) -> AsyncIterator[RecallService]:
    """Opens a recall over its own service."""
    async with open_service(directory, **settings) as service:
        recall = RecallService(service.services, service.clock, embedder)
        try:
            yield recall
        finally:
            recall.close()
