"""What a new version of an ontology does to the stored entities and facts of its namespace."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from memorywall.kinds.facts import ENTITY, FACT, Entity, Fact, Ontology
from memorywall.longterm.fact_reader import FactReader
from memorywall.longterm.ontology import (
    check_entity,
    check_fact,
    decode_ontology,
    migrate,
    refuse,
)
from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.errors import KeyUnavailableError
from memorywall.records.feature_errors import RuleError
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.governed_entries import decode_value
from memorywall.service.entries.state import set_state
from memorywall.service.entries.writes import make_next_version, replace_entry
from memorywall.service.requests.namespace_names import namespace_forms
from memorywall.service.requests.operation_context import OperationContext

PAGE: Final = 100
"""Entries that one step judges."""
MOST_COMPARED: Final = 10_000
"""The most entities, and the most facts, that are compared with an ontology as it is written. A
migration, or a check, compares all."""
_SEALED: Final = "key_unavailable"


class Judgement(NamedTuple):
    """What an ontology does to a stored entity or fact.

    stored, opened: its entry, with its value as stored, and in clear text
    before: its value; None if it is not available
    after: its value after the migration; None if it is dropped
    rule: the rule by which it does not fit, "" if it fits
    """

    stored: Entry
    opened: Entry
    before: Entity | Fact | None
    after: Entity | Fact | None
    rule: str = ""

    @property
    def outcome(self) -> str:
        """One word: `unfit`, `dropped`, `changed` or `unchanged`."""
        if self.rule:
            return "unfit"
        if self.after is None:
            return "dropped"
        return "unchanged" if self.after == self.before else "changed"


async def find_classes(
    reader: FactReader, ontology: Ontology, fact: Fact
) -> tuple[str | None, str | None]:
    """Returns the classes of the subject and of the object of a fact; None for what is no entity,
    and for the name of several."""
    ends = (fact.subject_node, fact.object_node)
    nodes = await reader.unify(ends)
    ids = [nodes[one][1:] if nodes[one].startswith("@") else "" for one in ends]
    found = await reader.load_entities(filter(None, ids))
    entities = [migrate(ontology, found[one].value) if one in found else None for one in ids]
    subject, obj = (None if one is None else one.entity_class for one in entities)
    return subject, obj


async def judge_page(
    context: OperationContext,
    ontology: Ontology,
    namespace: str,
    kind: str,
    before: str | None = None,
    *,
    only_readable: bool = False,
) -> list[Judgement]:
    """Returns what an ontology does to the next entities or facts of its namespace, newest first.

    namespace: its full name
    kind: `entity` or `fact`
    before: only entries that were created before the one with this id
    only_readable: whether only entries count that the caller may read; default: false
    """
    forms = await namespace_forms(context, namespace)
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=(Tier.SEMANTIC,),
        namespace=forms[0],
        aliases=forms[1:],
        kind=kind,
        state=None,
        before=before,
        limit=PAGE,
        counted=False,
    )
    within = VisibilityFilter(namespaces=forms)
    if only_readable:
        within = await load_visibility(context, Verb.READ, wanted)
    found, _ = await context.transaction.entries.search(wanted, within, context.now)
    migrated = [await _migrate(context, ontology, entry) for entry in found]
    reader = FactReader(context, forms, lambda entry: True)
    # The entities of all facts at once, rather than with some queries for each fact.
    facts = [one.after for one in migrated if isinstance(one.after, Fact)]
    await reader.unify(node for one in facts for node in (one.subject_node, one.object_node))
    return [await _judge(reader, ontology, one) for one in migrated]


async def _migrate(context: OperationContext, ontology: Ontology, stored: Entry) -> Judgement:
    try:
        opened = await context.service.cipher.open(context.transaction, stored)
    except KeyUnavailableError:
        return Judgement(stored, stored, None, None, _SEALED)
    schema: type[Entity | Fact] = Fact if stored.kind == FACT.name else Entity
    before = decode_value(opened, schema)
    return Judgement(stored, opened, before, migrate(ontology, before))


async def _judge(reader: FactReader, ontology: Ontology, one: Judgement) -> Judgement:
    if one.after is None or one.stored.state == "withdrawn":
        return one
    try:
        if isinstance(one.after, Fact):
            check_fact(ontology, one.after, *await find_classes(reader, ontology, one.after))
        else:
            check_entity(ontology, one.after)
    except RuleError as error:
        return one._replace(rule=error.rule)
    return one


async def check_contradictions(
    context: OperationContext, namespace: str, ontology: Ontology
) -> None:
    """Raises RuleError for an ontology that stored entities or facts contradict, after its
    migration; up to `MOST_COMPARED` of each are compared."""
    rules: Counter[str] = Counter()
    for kind in (ENTITY.name, FACT.name):
        before: str | None = None
        for _ in range(MOST_COMPARED // PAGE):
            page = await judge_page(context, ontology, namespace, kind, before)
            rules.update(one.rule for one in page if one.rule and one.stored.state == "live")
            if len(page) < PAGE:
                break
            before = page[-1].stored.id
            await context.transaction.give_way()
    if rules:
        shown = ", ".join(f"`{rule}` {number}" for rule, number in sorted(rules.items()))
        refuse(
            "contradicts_facts",
            f"stored entities or facts would not fit: {shown}; change them first, or declare steps",
        )


async def migrate_page(context: OperationContext, stored: Entry, cursor: str) -> tuple[int, str]:
    """Migrates the next entities, or facts, of a namespace.

    stored: the entry of its ontology
    cursor: "" for the first page; otherwise what the page before has returned

    Returns the number of changed entries and the cursor, "" after the last page. An entry that does
    not fit stays as it is.
    """
    opened = await context.service.cipher.open(context.transaction, stored)
    ontology = decode_ontology(opened)
    kind, _, before = (cursor or ENTITY.name).partition("/")
    page = await judge_page(context, ontology, opened.namespace, kind, before or None)
    changed = 0
    for one in page:
        changed += await _apply(context, one)
    if len(page) == PAGE:
        return changed, f"{kind}/{page[-1].stored.id}"
    if kind == ENTITY.name:
        return changed, FACT.name
    await _store(context, stored, opened, replace(ontology, migrated=True))
    return changed, ""


async def _apply(context: OperationContext, one: Judgement) -> bool:
    """Stores what a migration makes of an entry; returns whether anything changes."""
    if one.outcome == "dropped" and one.stored.state != "withdrawn":
        await set_state(context, one.stored, "withdrawn")
        return True
    if one.outcome == "changed" and one.after is not None:
        await _store(context, one.stored, one.opened, one.after)
        return True
    return False


async def _store(
    context: OperationContext, stored: Entry, opened: Entry, value: Entity | Fact | Ontology
) -> None:
    new = make_next_version(context, opened, msgspec.json.encode(value))
    await replace_entry(context, stored, new, policy="keep")
