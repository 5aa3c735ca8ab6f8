"""Reads the facts and entities of a namespace: by their nodes, at two instants, by one caller.

A node is an entity, a name, a number, a truth value or an instant (`kinds.facts.node_of`). A name
that exactly one entity of the namespace has is that entity, for as long as the entity or its alias
exists; of two entities with one name neither is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from memorywall.expressions.value_index import relation_of
from memorywall.kinds.facts import (
    ALIAS_OF,
    ENTITY,
    FACT,
    ONTOLOGY,
    Entity,
    Fact,
    Ontology,
    node_of,
    node_of_id,
)
from memorywall.kinds.spec import KindSpec
from memorywall.longterm.ontology import NO_ONTOLOGY, ONTOLOGY_KEY, decode_ontology
from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.feature_errors import ScanLimitError
from memorywall.records.filter import EntryFilter
from memorywall.records.session import belongs_to
from memorywall.records.tier import Tier
from memorywall.records.validity import ANY_TIME, Validity
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.governed_entries import decode_value
from memorywall.service.entries.kind_rules import lookup_target
from memorywall.service.requests.namespace_names import stored_filter
from memorywall.service.requests.operation_context import OperationContext

MOST_READ = 10_000
"""The most facts and entities that one request reads."""
MOST_NAMES = 64
"""The most entries of one name, and the most aliases of an entity, that count."""
_AT_ONCE = 500
_AFTER = "\x01"
"""Follows a text: the end of the range that contains the text alone."""
_WITHIN = "\x0b"
"""In place of the last line break: the end of the range of all targets that begin alike."""
_PARTS = {"subject": 3, "object": 3, "relation": 2, "name": 1, "class": 1}
"""The numbers of parts of the look-ups of `kinds.facts`."""
Key = tuple[str, ...]


class StoredFact(NamedTuple):
    """A fact with its entry, whose value is in clear text."""

    entry: Entry
    value: Fact


class StoredEntity(NamedTuple):
    """An entity with its entry, whose value is in clear text."""

    entry: Entry
    value: Entity

    @property
    def node(self) -> str:
        """The node of the entity, or of the one that it is an alias of."""
        return node_of_id(self.value.alias_of or self.entry.id)


class FactReader:
    """Reads facts for one request.

    namespaces: all stored forms of the namespace
    can_see: whether the caller may know of an entry of the namespace
    valid_at: only facts that hold at this instant; `ANY_TIME` for all
    as_of: the state of memory at this instant; None for the present
    """

    def __init__(
        self,
        context: OperationContext,
        namespaces: Sequence[str],
        can_see: Callable[[Entry], bool],
        *,
        valid_at: str = ANY_TIME,
        as_of: str | None = None,
    ) -> None:
        self._context = context
        self.namespaces = namespaces
        self._can_see = can_see
        self._valid_at = valid_at
        self._as_of = as_of
        self._left = {ENTITY.name: MOST_READ, FACT.name: MOST_READ}
        self._has_entities: bool | None = None
        self._may_be_sealed = True
        self._earlier: dict[str, _Earlier] = {}
        self._entities: dict[str, StoredEntity | None] = {}
        self._nodes: dict[str, str] = {}

    async def load_ontology(self) -> Ontology:
        """Returns the present ontology of the namespace; one without types if there is none that
        the caller may see."""
        for name in self.namespaces:
            found = await self._context.transaction.entries.find(
                Tier.SEMANTIC, "", name, ONTOLOGY_KEY
            )
            if found is None or not self._can_see(found):
                continue
            if found.kind == ONTOLOGY.name and found.state == "live":
                opened = await self._context.service.cipher.open(self._context.transaction, found)
                return decode_ontology(opened)
        return NO_ONTOLOGY

    # Facts

    async def by_node(
        self,
        side: str,
        nodes: Collection[str],
        relations: Collection[str] = (),
        *,
        ends_after: str | None = None,
        first: int = 0,
    ) -> AsyncGenerator[list[StoredFact], None]:
        """Yields the facts with any of these nodes at a side, `subject` or `object`, in parts.

        relations: only facts of these relations; default: any
        ends_after: only facts that end after this instant, also later ones; default: as the reader
        first: facts of each node and relation in the first part; default: most of what is there
        """
        keys = [(node, one) for node in nodes for one in relations] if relations else [
            (node,) for node in nodes
        ]  # fmt: skip
        async for part in self._facts(side, keys, first, ends_after):
            yield [one for one in part if not relations or one.value.relation in relations]

    async def by_relation(
        self, relations: Collection[str], first: int = 0
    ) -> AsyncGenerator[list[StoredFact], None]:
        """Yields the facts of any of these relations, in parts, like `by_node`."""
        async for part in self._facts("relation", [(one,) for one in relations], first):
            yield part

    async def count(self, lookup: str, keys: Sequence[Key], most: int) -> int:
        """Returns the number of facts that a look-up would read, or `most` if there are more. Facts
        that the caller cannot read count."""
        ranges = self._ranges(lookup, keys)
        relation = relation_of(lookup, FACT.name)
        return len(await self._context.transaction.edges.between(relation, ranges, most))

    async def _facts(
        self, lookup: str, keys: Sequence[Key], first: int, ends_after: str | None = None
    ) -> AsyncGenerator[list[StoredFact], None]:
        async for part in self._entries(FACT, lookup, keys, first, ends_after):
            yield [
                StoredFact(entry, value)
                for entry, value in part
                if Validity(value.valid_from, value.end).holds_at(self._valid_at)
            ]

    # Entities

    async def of_class(self, classes: Collection[str]) -> list[StoredEntity]:
        """Returns the entities of these classes."""
        keys = [(one,) for one in classes]
        return [one async for part in self._entries(ENTITY, "class", keys) for one in
                self._keep(part)]  # fmt: skip

    async def load_entities(self, ids: Iterable[str]) -> dict[str, StoredEntity]:
        """Returns those of these entities that the caller may read and that are of this namespace,
        by id."""
        asked = list(dict.fromkeys(ids))
        wanted = [one for one in asked if one not in self._entities]
        if wanted:
            self._entities.update(dict.fromkeys(wanted))
            self._keep(await self._shown(ENTITY, wanted))
            earlier = await self._load_earlier(ENTITY)
            self._keep([earlier.by_id[one] for one in wanted if one in earlier.by_id])
        found = ((one, self._entities[one]) for one in asked)
        return {one: entity for one, entity in found if entity is not None}

    async def unify(self, nodes: Iterable[str]) -> dict[str, str]:
        """Returns the node that each node stands for: the entity that it is a name of, if it is the
        name of exactly one, and the entity that an alias names."""
        asked = list(dict.fromkeys(nodes))
        new = [one for one in asked if one not in self._nodes]
        ids = await self.load_entities([one[1:] for one in new if one.startswith("@")])
        for one in new:
            entity = ids.get(one[1:]) if one.startswith("@") else None
            self._nodes[one] = one if entity is None else entity.node
        names = [one for one in new if one[0] in "=#"]
        if names and await self._may_have_entities():
            keys = [(one,) for one in names]
            named: dict[str, set[str]] = {}
            async for part in self._entries(ENTITY, "name", keys, MOST_NAMES):
                for entity in self._keep(part):
                    for one in (entity.value.name, *entity.value.aliases):
                        named.setdefault(node_of(one), set()).add(entity.node)
            targets = await self.load_entities([id_[1:] for ids_ in named.values() for id_ in ids_])
            for one in names:
                known = [node for node in named.get(one, ()) if node[1:] in targets]
                if len(known) == 1:
                    self._nodes[one] = known[0]
        return {one: self._nodes[one] for one in asked}

    async def spellings(self, nodes: Iterable[str]) -> list[str]:
        """Returns all nodes that stand for one of these, which `unify` has returned."""
        found = dict.fromkeys(nodes)
        entities = await self.load_entities([one[1:] for one in found if one.startswith("@")])
        if not entities:
            return list(found)
        edges = self._context.transaction.edges
        ids = await edges.sources(ALIAS_OF, entities, MOST_NAMES * len(entities))
        earlier = await self._load_earlier(ENTITY)
        ids += [one for one, (_, value) in earlier.by_id.items() if value.alias_of in entities]
        aliases = await self.load_entities(ids)
        names = [
            node_of(name)
            for one in (*entities.values(), *aliases.values())
            for name in (one.value.name, *one.value.aliases)
        ]
        unified = await self.unify((*names, *map(node_of_id, aliases)))
        found.update(dict.fromkeys(one for one, node in unified.items() if node in found))
        return list(found)

    async def _may_have_entities(self) -> bool:
        """Whether a name may be that of an entity: most namespaces have none."""
        if self._has_entities is None:
            ranges = [(f"{one}\n", one + _WITHIN) for one in self.namespaces]
            relation = relation_of("name", ENTITY.name)
            found = await self._context.transaction.edges.between(relation, ranges, 1)
            is_unknown = self._as_of is not None or bool(await self._digests([("",)]))
            self._has_entities = bool(found) or is_unknown
        return self._has_entities

    def _keep(self, part: Iterable[tuple[Entry, Any]]) -> list[StoredEntity]:
        entities = [StoredEntity(entry, value) for entry, value in part]
        self._entities.update((one.entry.id, one) for one in entities)
        return entities

    # Entries

    async def _entries(
        self,
        kind: KindSpec,
        lookup: str,
        keys: Sequence[Key],
        first: int = 0,
        ends_after: str | None = None,
    ) -> AsyncGenerator[list[tuple[Entry, Any]], None]:
        """Yields the entries of a look-up with their values, each once, in parts."""
        if not keys:
            return
        seen: set[str] = set()
        relation, edges = relation_of(lookup, kind.name), self._context.transaction.edges
        ranges = self._ranges(lookup, keys, ends_after)
        for limit in (first, 20 * first, MOST_READ) if first else (MOST_READ,):
            most = len(seen) + min(limit, self._left[kind.name]) + 1
            rows = await edges.between(relation, ranges, most)
            ids = [one for one in dict.fromkeys(entry for _, entry in rows) if one not in seen]
            seen.update(ids)
            for start in range(0, len(ids), _AT_ONCE):
                yield await self._shown(kind, ids[start : start + _AT_ONCE])
            if len(rows) < most:
                break
        if digests := await self._digests(keys):
            sealed = await edges.sources(relation, digests, self._left[kind.name] + 1)
            yield await self._shown(kind, [one for one in sealed if one not in seen])
        earlier = await self._load_earlier(kind)
        then = [found for key in keys for found in earlier.by_key.get((lookup, key), ())]
        yield list({entry.id: (entry, value) for entry, value in then}.values())

    def _ranges(
        self, lookup: str, keys: Sequence[Key], ends_after: str | None = None
    ) -> list[tuple[str, str]]:
        """Returns the ranges of targets that begin with a key; those of facts that have ended are
        left out where the end comes next."""
        if ends_after is None:
            ends_after = "" if self._valid_at == ANY_TIME else self._valid_at
        parts = _PARTS[lookup]
        ranges = []
        for namespace in self.namespaces:
            for key in keys:
                target = lookup_target(namespace, key)
                if len(key) == parts:
                    ranges.append((target, target + _AFTER))
                    continue
                start = f"\n{ends_after}{_AFTER}" if ends_after and len(key) == parts - 1 else "\n"
                ranges.append((target + start, target + _WITHIN))
        return ranges

    async def _digests(self, keys: Sequence[Key]) -> list[str]:
        """Returns the targets of sealed entries; none for a tenant that has never sealed."""
        find, transaction = self._context.service.cipher.find_digest, self._context.transaction
        targets = dict.fromkeys(
            lookup_target(namespace, key[:1]) for namespace in self.namespaces for key in keys
        )
        found: list[str] = []
        for target in targets if self._may_be_sealed else ():
            digest = await find(transaction, target)
            if digest is None:
                self._may_be_sealed = False
                break
            found.append(digest)
        return found

    async def _shown(self, kind: KindSpec, ids: Sequence[str]) -> list[tuple[Entry, Any]]:
        """Returns those of some entries that the caller may see, as they are now and were at
        `as_of`, in the order of the ids. Raises ScanLimitError."""
        if not ids:
            return []
        self._left[kind.name] -= len(ids)
        if self._left[kind.name] < 0:
            raise ScanLimitError(
                f"this reads more than {MOST_READ} facts; name a subject or an object, a relation"
                " with fewer facts, or fewer hops"
            )
        transaction = self._context.transaction
        found = await transaction.entries.get_many(ids, self._context.now)
        place = {one: number for number, one in enumerate(ids)}
        found.sort(key=lambda entry: place[entry.id])
        shown = []
        for entry in found:
            is_then = self._as_of is None or entry.updated_at <= self._as_of
            if is_then and entry.kind == kind.name and self._is_seen(entry):
                shown.append(await self._decode(kind, entry))
        await transaction.give_way()
        return shown

    def _is_seen(self, entry: Entry) -> bool:
        return entry.state == "live" and entry.namespace in self.namespaces and self._can_see(entry)

    async def _decode(self, kind: KindSpec, entry: Entry) -> tuple[Entry, Any]:
        opened = entry
        if entry.sealing_key is not None:
            opened = await self._context.service.cipher.open(self._context.transaction, entry)
        return opened, decode_value(opened, kind.schema)

    async def _load_earlier(self, kind: KindSpec) -> _Earlier:
        """Returns the entries that have changed since `as_of`, as they were then."""
        if self._as_of is None:
            return _NOTHING_EARLIER
        if kind.name not in self._earlier:
            self._earlier[kind.name] = await self._read_earlier(kind, self._as_of)
        return self._earlier[kind.name]

    async def _read_earlier(self, kind: KindSpec, as_of: str) -> _Earlier:
        transaction, now = self._context.transaction, self._context.now
        within = VisibilityFilter(namespaces=tuple(self.namespaces))
        wanted = EntryFilter(
            tenant=self._context.tenant,
            tiers=(Tier.SEMANTIC,),
            kind=kind.name,
            state=None,
            updated_after=as_of,
            limit=MOST_READ + 1,
            counted=False,
        )
        ids: list[str] = []
        for namespace in self.namespaces:
            of_name = msgspec.structs.replace(wanted, namespace=namespace)
            found, _ = await transaction.entries.search(of_name, within, now)
            ids += [one.id for one in found if one.created_at <= as_of]
            if len(found) > MOST_READ:
                raise ScanLimitError(
                    f"more than {MOST_READ} facts have changed since `as_of`; name a later instant"
                )
        versions = await transaction.history.as_of(ids, as_of)
        earlier = _Earlier({}, {})
        for one in versions.values():
            is_live = one.expires_at is None or one.expires_at > as_of
            if is_live and one.kind == kind.name and self._is_seen(one):
                earlier.add(kind, await self._decode(kind, one))
        return earlier


async def open_reader(
    context: OperationContext, namespace: str, valid_at: str | None, as_of: str | None
) -> FactReader:
    """Returns a reader of the facts that the caller may read in a namespace, by its name in the
    request.

    valid_at, as_of: see `FactReader`; None for that of `as_of`, or now
    """
    wanted = EntryFilter(tenant=context.tenant, tiers=(Tier.SEMANTIC,), namespace=namespace)
    wanted = await stored_filter(context, wanted, for_reading=True)
    within = await load_visibility(context, Verb.READ, wanted)

    def can_see(entry: Entry) -> bool:
        return (
            entry.namespace in within.namespaces
            and (within.subjects is None or set(entry.subjects) <= set(within.subjects))
            and (within.limited_to is None or entry.namespace in within.limited_to)
            and (
                within.session is None
                or belongs_to(within.session, entry.tier, entry.scope.session_id)
            )
        )

    return FactReader(
        context,
        (wanted.namespace or namespace, *wanted.aliases),
        can_see,
        valid_at=valid_at or as_of or context.now,
        as_of=as_of,
    )


class _Earlier(NamedTuple):
    """Earlier versions of entries: by id, and by each key of a look-up."""

    by_id: dict[str, tuple[Entry, Any]]
    by_key: dict[tuple[str, Key], list[tuple[Entry, Any]]]

    def add(self, kind: KindSpec, found: tuple[Entry, Any]) -> None:
        """Adds a version with its value."""
        self.by_id[found[0].id] = found
        for lookup in kind.lookups(found[1]):
            for length in range(1, len(lookup.parts) + 1):
                key = (lookup.name, lookup.parts[:length])
                self.by_key.setdefault(key, []).append(found)


_NOTHING_EARLIER = _Earlier({}, {})
