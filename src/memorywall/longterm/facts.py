"""The rules by which facts, entities and ontologies are admitted (memory wall, 11.5).

What does not fit the ontology of its namespace is refused. The facts of a subject with a functional
relation are a line in time: a newer value ends the validity of the older one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from memorywall.kinds.facts import (
    ALIAS_OF,
    ENTITY,
    FACT,
    ONTOLOGY,
    Entity,
    Fact,
    Ontology,
)
from memorywall.longterm.conflicts import ConflictSide, Resolution, resolve
from memorywall.longterm.fact_reader import FactReader, StoredFact
from memorywall.longterm.migration import check_contradictions, find_classes
from memorywall.longterm.ontology import (
    NO_ONTOLOGY,
    ONTOLOGY_KEY,
    check_entity,
    check_fact,
    next_version,
    refuse,
    same_key,
)
from memorywall.longterm.proposals import proposal_for
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, authority_of
from memorywall.records.errors import ValidationError
from memorywall.service.access.targets import load_target
from memorywall.service.entries.admission import admission_rule
from memorywall.service.entries.governed_entries import decode_value, read_value
from memorywall.service.entries.kind_rules import with_stored_instants
from memorywall.service.entries.provenance import provenance_of
from memorywall.service.entries.state import set_state
from memorywall.service.entries.writes import make_next_version, replace_entry
from memorywall.service.requests.namespace_names import USER_PREFIX, namespace_forms
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import encode_value

_FIRST = 8
"""Facts of a line in time that are read first: mostly one or two overlap a new one."""
_ID: Final = "mem_"
_REASONS = {
    Resolution.HUMAN_REVIEW: "a person stands behind the fact that it contradicts",
    Resolution.MANUAL: "it contradicts a fact of the same authority, and neither is newer",
    Resolution.SUGGEST_REVIEW: "it contradicts a fact of a higher authority, with much evidence",
    Resolution.REJECT: "it contradicts a fact of a higher authority",
}
Value = TypeVar("Value", Entity, Fact, Ontology)


async def reader_for(context: OperationContext, entry: Entry) -> FactReader:
    """Returns a reader of the namespace of an entry that is about to be stored. It sees what is
    about nobody else than the entry, which whoever may write the entry may read."""
    name, known = entry.namespace, set(entry.subjects)
    for subject in entry.subjects:
        digest = await context.service.cipher.find_digest(context.transaction, subject)
        if digest is not None:
            known.add(digest)
            name = name.replace(f"{USER_PREFIX}{digest}/", f"{USER_PREFIX}{subject}/", 1)
    session = entry.scope.session_id

    def can_see(one: Entry) -> bool:
        # The ontology holds for whoever writes.
        is_own = set(one.subjects) <= known and one.scope.session_id in (None, session)
        return is_own or one.kind == ONTOLOGY.name

    forms = dict.fromkeys((entry.namespace, *await namespace_forms(context, name)))
    return FactReader(context, tuple(forms), can_see)


@admission_rule(ENTITY.name)
async def admit_entity(context: OperationContext, old: Entry | None, new: Entry) -> Entry:
    """Admits an entity that fits the ontology. Raises RuleError, ValidationError."""
    entity = decode_value(new, Entity)
    if context.is_system:
        return new
    reader = await reader_for(context, new)
    if entity.alias_of is not None:
        target = (await reader.load_entities([entity.alias_of])).get(entity.alias_of)
        if target is None or target.value.alias_of is not None or target.entry.id == new.id:
            raise ValidationError("`value.alias_of` must name an entity of the namespace")
        if await context.transaction.edges.sources(ALIAS_OF, [new.id], 1):
            raise ValidationError("`value.alias_of`: an entity that has aliases cannot be one")
    ontology = await reader.load_ontology()
    _refuse_while_migrating(ontology)
    version = None
    if ontology is not NO_ONTOLOGY:
        check_entity(ontology, entity)
        version = ontology.version
    return _with_value(new, entity, replace(entity, ontology_version=version))


@admission_rule(FACT.name)
async def admit_fact(context: OperationContext, old: Entry | None, new: Entry) -> Entry:
    """Admits a fact that fits the ontology, and ends the validity of the older facts that it
    replaces, or returns a proposal. Raises RuleError, ValidationError."""
    if context.is_system:
        return new
    new = with_stored_instants(new)
    given = decode_value(new, Fact)
    before = None
    if old is not None and old.kind == FACT.name:
        before = await read_value(context, old, Fact)
    if before is not None and _only_ends(before, given):
        return new
    if given.valid_from is not None and given.end <= given.valid_from:
        raise ValidationError("`value.valid_until` must be after `value.valid_from`")
    fact = await _name_entities(context, given)
    reader = await reader_for(context, new)
    ontology = await reader.load_ontology()
    _refuse_while_migrating(ontology)
    version = None
    if ontology is not NO_ONTOLOGY:
        check_fact(ontology, fact, *await find_classes(reader, ontology, fact))
        version = ontology.version
    fact = replace(fact, ontology_version=version)
    side = _side(context.now, new, fact)
    if old is not None and before is not None and _states_other(before, fact):
        resolution = resolve(side, _side(old.updated_at, old, before))
        if not resolution.accepts:
            return _set_aside(context, _with_value(new, given, fact), resolution, [old.id], old.id)
    if keys := same_key(ontology, fact.relation):
        line = _Line(context, reader, keys, _with_value(new, given, fact), fact)
        return await line.admit()
    return _with_value(new, given, fact)


@admission_rule(ONTOLOGY.name)
async def admit_ontology(context: OperationContext, old: Entry | None, new: Entry) -> Entry:
    """Admits an ontology that keeps the rules of versions and contradicts no stored fact. Raises
    RuleError, ValidationError."""
    given = decode_value(new, Ontology)
    if context.is_system:
        return new
    # Before the first change: to compare it with the stored facts takes long.
    context.require_long_run()
    if new.key != ONTOLOGY_KEY:
        raise ValidationError(f"`key` of an ontology must be `{ONTOLOGY_KEY}`")
    before = NO_ONTOLOGY
    if old is not None and old.kind == ONTOLOGY.name:
        before = await read_value(context, old, Ontology)
    ontology = next_version(before, given)
    await check_contradictions(context, new.namespace, ontology)
    return _with_value(new, given, ontology)


def _refuse_while_migrating(ontology: Ontology) -> None:
    if not ontology.migrated:
        refuse(
            "migration_pending",
            "the facts of the namespace are being migrated to a new version of its ontology; try"
            " again",
        )


class _Line:
    """The facts of a subject with a functional relation, in the order of time, and a new one."""

    def __init__(
        self,
        context: OperationContext,
        reader: FactReader,
        relations: list[str],
        entry: Entry,
        fact: Fact,
    ) -> None:
        self._context = context
        self._reader = reader
        self._relations = relations
        self._entry = entry
        self._fact = fact
        self._is_open = fact.valid_until is None

    async def admit(self) -> Entry:
        """Returns the new fact, whose validity ends where the next value begins, after the facts
        that it replaces have been changed; or a proposal. Raises RuleError."""
        given = self._fact
        if given.valid_from is None and given.valid_until is None and await self._has_others():
            # Without a beginning it would contradict all that held before.
            self._fact = replace(given, valid_from=self._context.now)
        replaced: list[StoredFact] = []
        deferred: list[tuple[Resolution, str]] = []
        async with aclosing(self._overlapping()) as parts:
            async for part in parts:
                for one in part:
                    self._judge(one, replaced, deferred)
                # What begins earlier and ends later than two values would contradict one of them.
                has_passed = len({one.value.object_node for one in part}) > 1
                if has_passed and all(
                    (one.value.valid_from or "") >= self._fact.end for one in part
                ):
                    break
        entry = _with_value(self._entry, given, self._fact)
        if deferred:
            # Whatever rejects it counts most.
            deferred.sort(key=lambda pair: pair[0] is not Resolution.REJECT)
            contradicted = [one for _, one in deferred]
            return _set_aside(self._context, entry, deferred[0][0], contradicted)
        for one in replaced:
            await self._give_way(one)
        return entry

    def _judge(
        self, one: StoredFact, replaced: list[StoredFact], deferred: list[tuple[Resolution, str]]
    ) -> None:
        start, end = self._fact.valid_from or "", self._fact.end
        begin = one.value.valid_from or ""
        if not (begin < end and start < one.value.end) or one.value.object_node == (
            self._fact.object_node
        ):
            return
        if begin > start and self._is_open:
            # It is about an earlier time than the stored value, which holds from its beginning on.
            self._fact = replace(self._fact, valid_until=begin)
            return
        resolution = resolve(
            _side(start, self._entry, self._fact), _side(begin, one.entry, one.value)
        )
        if resolution.accepts:
            replaced.append(one)
        else:
            deferred.append((resolution, one.entry.id))

    async def _has_others(self) -> bool:
        now = self._context.now
        async with aclosing(self._overlapping()) as parts:
            async for part in parts:
                if any((one.value.valid_from or "") <= now for one in part):
                    return True
        return False

    async def _overlapping(self) -> AsyncGenerator[list[StoredFact], None]:
        """Yields the other facts that end after the new one begins, in parts; of each name of the
        subject and each relation the first ones to end come first."""
        subject = self._fact.subject_node
        nodes = await self._reader.spellings((await self._reader.unify([subject])).values())
        after = self._fact.valid_from or ""
        async for part in self._reader.by_node(
            "subject", nodes, self._relations, ends_after=after, first=_FIRST
        ):
            yield [
                one
                for one in part
                if one.entry.id != self._entry.id
                and len(one.entry.subjects) == len(self._entry.subjects)
            ]

    async def _give_way(self, one: StoredFact) -> None:
        """Ends the validity of a fact where the new one begins. A fact of which nothing is left is
        superseded, and one that begins and ends later begins where the new one ends."""
        stored = await self._context.transaction.entries.get(one.entry.id, self._context.now)
        if stored is None:
            return
        start, end = self._fact.valid_from or "", self._fact.end
        if (one.value.valid_from or "") < start:
            change: dict[str, str | None] = {"valid_until": start}
        elif one.value.end > end:
            change = {"valid_from": end}
        else:
            await set_state(
                self._context, stored, "superseded", superseded_by=self._entry.id
            )  # fmt: skip
            return
        writer = provenance_of(self._context.principal, not stored.owner)
        new = make_next_version(
            self._context,
            one.entry,
            msgspec.json.encode(replace(one.value, **change)),
            curated_by=self._context.principal.id,
            # Who said it, and how far it is trusted, stays.
            provenance=replace(
                one.entry.provenance,
                principal=writer.principal,
                kind=writer.kind,
                fencing_token=writer.fencing_token,
            ),
        )
        await replace_entry(self._context, stored, new, policy="keep", is_decided=True)


def _set_aside(
    context: OperationContext,
    entry: Entry,
    resolution: Resolution,
    contradicts: list[str],
    replaces: str | None = None,
) -> Entry:
    """Returns a proposal to store a fact. Raises RuleError for a rejected one."""
    if resolution is Resolution.REJECT:
        refuse(resolution.value, _REASONS[resolution])
    return proposal_for(
        context,
        entry,
        rule=resolution.value,
        reason=_REASONS[resolution],
        contradicts=contradicts,
        replaces=replaces,
    )


def _side(instant: str, entry: Entry, fact: Fact) -> ConflictSide:
    provenance = entry.provenance
    return ConflictSide(
        authority_of(provenance),
        instant,
        fact.confidence,
        fact.evidence_count,
        is_confirmed=provenance.verified_by is not None,
    )


def _states_other(before: Fact, after: Fact) -> bool:
    """Whether an update states something else, and not only when it holds or how sure it is."""
    return (before.subject_node, before.relation, before.object_node, before.attributes) != (
        after.subject_node, after.relation, after.object_node, after.attributes,
    )  # fmt: skip


def _only_ends(before: Fact, after: Fact) -> bool:
    """Whether an update only shortens the validity."""
    return (
        replace(before, valid_from=None, valid_until=None)
        == replace(after, valid_from=None, valid_until=None)
        and (before.valid_from or "") <= (after.valid_from or "") < after.end <= before.end
    )


async def _name_entities(context: OperationContext, fact: Fact) -> Fact:
    """Returns a fact with the ids of the entities that it names by id, and with their names, by
    which it is found. Raises ValidationError for an id of no readable entity."""
    fields: dict[str, Any] = {}
    for name in ("subject", "object"):
        text, entity_id = getattr(fact, name), getattr(fact, f"{name}_id")
        is_id = isinstance(text, str) and text.startswith(_ID)
        if entity_id is None and not is_id:
            continue
        entry = await context.transaction.entries.get(entity_id or text, context.now)
        if entry is None or entry.kind != ENTITY.name or not context.allows(
            Verb.READ, await load_target(context, Verb.READ, entry)
        ):  # fmt: skip
            if entity_id is None:
                continue
            raise ValidationError(f"`value.{name}_id` names no entity that this agent can read")
        fields[f"{name}_id"] = entry.id
        if text is None or is_id:
            fields[name] = (await read_value(context, entry, Entity)).name
    return replace(fact, **fields) if fields else fact


def _with_value(entry: Entry, given: Value, value: Value) -> Entry:
    if value == given:
        return entry
    encoded = encode_value(msgspec.to_builtins(value))
    return replace(entry, value=encoded, size=len(encoded))
