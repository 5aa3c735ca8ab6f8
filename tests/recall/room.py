"""A house to search in: who writes, what is written, and what a search shows of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from memorywall.pipelines.embed import Embedding
from memorywall.recall.index import Index
from memorywall.recall.search import search
from memorywall.records.draft import Change, Draft
from memorywall.records.entry import Entry, Scope
from memorywall.records.errors import MemoryAccessError
from memorywall.records.filter import Filter
from memorywall.records.namespace import Access, Grant
from memorywall.records.principal import Permission, Principal, PrincipalKind
from memorywall.records.recall import Found, Sought
from memorywall.records.tier import Tier
from memorywall.settings import DEFAULT_TENANT
from memorywall.wall import entries
from memorywall.wall.administration import create_tenant
from memorywall.wall.door import Door
from memorywall.wall.namespaces import set_permissions
from tests.support.embedder import WordEmbedder
from tests.support.house import TestClock, open_house


def agent(name: str, tenant: str = DEFAULT_TENANT) -> Principal:
    """An agent that may read, write and manage what it founds."""
    return Principal(
        tenant=tenant,
        id=name,
        kind=PrincipalKind.AGENT,
        permissions=frozenset({Permission.READ, Permission.WRITE, Permission.ADMIN}),
    )


class Room:
    """A door, an index over it, and what tests do with the two."""

    def __init__(self, door: Door, clock: TestClock, embedder: WordEmbedder | None = None) -> None:
        self.door = door
        self.clock = clock
        self.embedder = embedder
        self.index = Index(door, embedder)
        self.embedding = None if embedder is None else Embedding(door, embedder, self.index.fields)
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
        draft = Draft(
            namespace=namespace,
            value={"text": value} if isinstance(value, str) else value,
            memory_type=tier,
            **fields,
        )
        made = await entries.create(self.door, who, draft)
        return await self.door.store.write(who.tenant, made)

    async def change(self, who: Principal, entry: Entry, **fields: Any) -> Entry:
        """Changes an entry at the version it has in `entry`."""
        if "scope" in fields:
            fields["scope"] = Scope(**fields["scope"])
        change = Change(**fields)
        script = await entries.update(self.door, who, entry.id, entry.version, change)
        return await self.door.store.write(who.tenant, script)

    async def remove(self, who: Principal, entry: Entry) -> None:
        """Deletes an entry."""
        await self.door.store.write(
            who.tenant, await entries.delete(self.door, who, entry.id, None)
        )

    async def can_get(self, who: Principal, entry: Entry) -> bool:
        """Whether the wall shows an entry that is there."""
        try:
            await entries.get(self.door, who, entry.id)
        except MemoryAccessError:
            return False
        return True

    async def open_namespace(self, who: Principal, name: str, default: str, **grants: str) -> None:
        """Sets what a namespace allows everybody, and what some; `who` goes on to manage it."""
        grants.setdefault(who.id, "admin")
        script = await set_permissions(
            self.door,
            who,
            name,
            default=Access(default),
            allow=[Grant(agent=one, access=Access(level)) for one, level in grants.items()],
        )
        await self.door.store.write(who.tenant, script)

    async def tenant(self, name: str) -> None:
        """Makes a tenant."""
        await create_tenant(self.door, name)

    async def search(self, who: Principal, query: str, **asked: Any) -> Found:
        """Searches; conditions of `Filter` and of `Sought` by their names."""
        return await search(self.index, who, sought(who, query, **asked))

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

    def anew(self) -> Room:
        """The same house seen by a process that has just begun."""
        return Room(self.door, self.clock, self.embedder)

    def close(self) -> None:
        """Lets go of what is held in memory."""
        if self.embedding is not None:
            self.embedding.close()
        self.index.close()


_OF_FILTER = frozenset(Filter.__dataclass_fields__)


def sought(who: Principal, query: str, **asked: Any) -> Sought:
    """A search, its conditions by their names."""
    wanted = {name: asked.pop(name) for name in list(asked) if name in _OF_FILTER - {"limit"}}
    return Sought(query=query, wanted=Filter(tenant=who.tenant, **wanted), **asked)


def told(found: Found) -> bytes:
    """Everything a search says, as bytes that compare."""
    return msgspec.json.encode(found)


@asynccontextmanager
async def open_room(
    directory: Path, embedder: WordEmbedder | None = None, **settings: Any
) -> AsyncIterator[Room]:
    """A room in a house of its own."""
    async with open_house(directory, **settings) as house:
        room = Room(house.door, house.clock, embedder)
        try:
            yield room
        finally:
            room.close()
