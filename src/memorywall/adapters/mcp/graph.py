"""A knowledge graph in memory: entities with observations, and relations between entities.

Each entity, observation and relation is a semantic entry of its own, whose key follows from its
content. Writers therefore create what is missing and never replace, and lose nothing to each other.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from memorywall.records.errors import EntryExistsError, MemoryNotFoundError, ValidationError
from memorywall.records.tier import Tier
from memorywall.sdk.client import AsyncClient
from memorywall.sdk.models import MemoryEntry
from memorywall.wire.entries import LARGEST_BATCH

NAMESPACE = "knowledge-graph"

Item: TypeAlias = dict[str, Any]
"""The value of an entry. It has the form of a line of the reference server's file, except that
each observation of an entity is an item."""


class GraphEntity(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A thing with a name, and what is known about it."""

    name: str
    entity_type: str
    observations: list[str]


class Relation(msgspec.Struct, frozen=True, kw_only=True, rename={"start": "from", "end": "to"}):
    """A directed relation between two entities, in the active voice."""

    start: str
    end: str
    relation_type: str = msgspec.field(name="relationType")


class KnowledgeGraph(msgspec.Struct, frozen=True, kw_only=True):
    """Entities and relations, in the order of their creation."""

    entities: list[GraphEntity]
    relations: list[Relation]


def entity_items(entity: GraphEntity) -> list[Item]:
    """The items of an entity, itself first."""
    own = {"type": "entity", "name": entity.name, "entityType": entity.entity_type}
    return [own, *(observation_item(entity.name, one) for one in entity.observations)]


def observation_item(name: str, text: str) -> Item:
    """The item of an observation about an entity."""
    return {"type": "observation", "entityName": name, "text": text}


def relation_item(relation: Relation) -> Item:
    """The item of a relation."""
    return {"type": "relation", **msgspec.to_builtins(relation)}


_IDENTITY = {
    "entity": ("name",),
    "observation": ("entityName", "text"),
    "relation": ("from", "relationType", "to"),
}


def _key(item: Item) -> str:
    """The key of an item; names may be any text, which keys may not."""
    kind = item["type"]
    named = json.dumps([item[one] for one in _IDENTITY[kind]])
    return f"{kind}-{sha256(named.encode()).hexdigest()[:40]}"


class GraphStore:
    """The graph of the agent of a client.

    client: reads and writes it; one that is bound to a person has the graph of this person
    waiting: the number of items that were not stored yet, because a person decides about them
    """

    def __init__(self, client: AsyncClient, namespace: str) -> None:
        # A client that has seen an entry would replace it.
        self._memory = client.scoped().memory
        self._namespace = namespace
        self.waiting = 0

    @classmethod
    async def open(cls, client: AsyncClient) -> GraphStore:
        """The graph of the client's agent, in a namespace that only this agent writes."""
        agent = (await client.whoami()).agent_id
        return cls(client, f"{NAMESPACE}/{agent}")

    async def create(self, groups: Sequence[Sequence[Item]]) -> list[list[Item]]:
        """Stores the items that are not there, and returns them, by group, without those that wait.
        If the first item of a group is there, nothing of the group is stored."""
        made: list[list[Item]] = [[] for _ in groups]
        # Each item once, at its first place.
        waiting = {
            _key(item): (number, place, item)
            for number, group in reversed([*enumerate(groups)])
            for place, item in reversed([*enumerate(group)])
        }
        keys = sorted(waiting, key=lambda key: waiting[key][:2])
        while keys:
            chunk = keys[:LARGEST_BATCH]
            try:
                written = await self._memory.batch(
                    [self._element(key, waiting[key][2]) for key in chunk]
                )
            except EntryExistsError as error:
                number, place, _ = waiting[chunk[error.index or 0]]
                left = {chunk[error.index or 0]}
                if place == 0:
                    left |= {key for key in keys if waiting[key][0] == number}
                keys = [key for key in keys if key not in left]
                continue
            for key, entry in zip(chunk, written, strict=True):
                number, _, item = waiting[key]
                if not entry.waits:
                    made[number].append(item)
            self.waiting += sum(entry.waits for entry in written)
            keys = keys[LARGEST_BATCH:]
        return made

    async def contains(self, name: str) -> bool:
        """Whether there is an entity of this name."""
        key = _key({"type": "entity", "name": name})
        return await self._memory.get(self._namespace, key, Tier.SEMANTIC) is not None

    async def delete(self, items: Iterable[Item]) -> None:
        """Deletes the items that are there."""
        for item in items:
            with suppress(MemoryNotFoundError):
                await self._memory.delete(self._namespace, _key(item), Tier.SEMANTIC)

    async def delete_entities(self, names: Iterable[str]) -> None:
        """Deletes entities, their observations, and relations from and to them."""
        gone = set(names)
        found = [entry async for entry in self._entries() if not gone.isdisjoint(_named(entry))]
        # Whoever looks for the entity from now on adds nothing to it.
        for entry in sorted(found, key=lambda one: one["type"] != "entity"):
            with suppress(MemoryNotFoundError):
                await self._memory.delete_by_id(entry.id)

    async def read(self) -> KnowledgeGraph:
        """The whole graph."""
        entities: dict[str, GraphEntity] = {}
        observations: list[Item] = []
        relations: list[Relation] = []
        async for entry in self._entries():
            item = entry.value
            if item["type"] == "entity":
                fields = {**item, "observations": []}
                entities[item["name"]] = msgspec.convert(fields, GraphEntity)
            elif item["type"] == "observation":
                observations.append(item)
            else:
                relations.append(msgspec.convert(item, Relation))
        for item in observations:
            if item["entityName"] in entities:
                entities[item["entityName"]].observations.append(item["text"])
        return KnowledgeGraph(entities=[*entities.values()], relations=relations)

    def _entries(self) -> AsyncIterator[MemoryEntry]:
        return self._memory.iterate(
            namespace=self._namespace,
            memory_type=Tier.SEMANTIC,
            order_by="created",
            direction="asc",
            page_size=1_000,
        )

    def _element(self, key: str, item: Item) -> dict[str, Any]:
        return {
            "namespace": self._namespace,
            "key": key,
            "memory_type": str(Tier.SEMANTIC),
            "value": item,
        }


def _named(entry: MemoryEntry) -> set[Any]:
    """The names of the entities that an entry is about."""
    return {entry.get(one) for one in ("name", "entityName", "from", "to")}


def read_lines(lines: Iterable[str]) -> KnowledgeGraph:
    """The graph in a file of the reference server, which has a JSON object in each line. Raises
    ValidationError, which names the line."""
    graph = KnowledgeGraph(entities=[], relations=[])
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = msgspec.json.decode(line)
            kind = item.get("type") if isinstance(item, dict) else None
            if kind == "entity":
                graph.entities.append(msgspec.convert(item, GraphEntity))
            elif kind == "relation":
                graph.relations.append(msgspec.convert(item, Relation))
            else:
                raise msgspec.ValidationError("unknown type")
        except msgspec.DecodeError:
            raise ValidationError(
                f"line {number} is neither an entity nor a relation of the memory server"
            ) from None
    return graph


async def import_graph(client: AsyncClient, graph: KnowledgeGraph) -> tuple[int, int, int, int]:
    """Adds a graph to that of the client's agent. Repeated, it adds nothing.

    Returns the numbers of entities, observations and relations that were not there, and of those
    that wait for the decision of a person.
    """
    store = await GraphStore.open(client)
    items = [item for one in graph.entities for item in entity_items(one)]
    items += [relation_item(one) for one in graph.relations]
    made = [
        item["type"] for group in await store.create([[one] for one in items]) for item in group
    ]
    counts = made.count("entity"), made.count("observation"), made.count("relation")
    return *counts, store.waiting
