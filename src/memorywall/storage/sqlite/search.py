"""The query of RFC-0015 section 4.1 as SQL of fixed parts; input of callers is only ever bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from memorywall.records.decision import VisibilityFilter
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import forms_of_names, name_forms
from memorywall.storage.filter_intersection import intersect_filter, within_limits
from memorywall.storage.sqlite.conditions import compile_where
from memorywall.storage.sqlite.row_conditions import (
    Condition,
    all_of,
    among,
    any_of,
    is_by_name,
    row_conditions,
)
from memorywall.storage.sqlite.search_statement import QueryPart, SqliteQuery

Execute = Callable[..., Iterable[tuple[Any, ...]]]

_TAGGED = "SELECT {} FROM entry_tags WHERE tenant = ? AND {}"
_HAS_TAG = "EXISTS (SELECT 1 FROM json_each(e.tags) WHERE {})"
_BY = "entries e INDEXED BY {}"
_THROUGH = "({}) t CROSS JOIN entries e ON e.number = t.entry"
_BY_GROUP = "(e.namespace, e.owner) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))"
_KIND_COUNT = """SELECT count(*) FROM (SELECT 1 FROM entries INDEXED BY entries_by_kind
WHERE tenant = ? AND kind = ? LIMIT ?)"""
_FEW_OF_KIND = 64
"""The most entries of a kind in a tenant that are found by their kind and not by their owner. The
limit also bounds what the duration tells about entries that are not visible."""
_STEPS_PER_LOOKUP = 6
"""The number of steps along a sorted list of entries that take the time of one lookup in it
(measured)."""


def plan(
    execute: Execute, wanted: EntryFilter, visibility: VisibilityFilter, now: str
) -> SqliteQuery | None:
    """Returns the query of a filter, or None if it can have no result."""
    wanted = within_limits(wanted, visibility)
    if visibility.has_work_access:
        visibility = intersect_filter(wanted, visibility)
    if visibility.is_empty:
        return None
    owners = (*visibility.owners, "") if visibility.namespaces else visibility.owners
    ways = [_visible(visibility, owners)] if owners else []
    if not visibility.has_work_access:
        return _plan(execute, wanted, ways[0], owners, now)
    work = list(_work_conditions(wanted, visibility))
    ways.extend(way for _, way in work)
    if wanted.task_id is not None:
        tagged = all_of([any_of(ways), *_tags_of_row(wanted)])
        part = _part(_BY.format("entries_by_task"), wanted, tagged, now)
        return SqliteQuery([part], wanted)
    if wanted.tags or wanted.tags_any:
        owners = tuple({*owners, *_owners_of_work(execute, wanted.tenant, visibility)})
        return _plan(execute, wanted, any_of(ways), owners, now, by_tag=True)
    if wanted.value_index is not None and wanted.value_index.is_complete and not is_by_name(wanted):
        return _plan(execute, wanted, any_of(ways), owners, now)
    parts = [_part(_source(execute, wanted), wanted, ways[0], now)] if owners else []
    for source, way in work:
        earlier, values = any_of(ways[: len(parts)])
        another = all_of([way, (f"{earlier} IS NOT TRUE", values)]) if parts else way
        parts.append(_part(source, wanted, another, now))
    return SqliteQuery(parts, wanted)


def _plan(
    execute: Execute,
    wanted: EntryFilter,
    reachable: Condition,
    owners: tuple[str, ...],
    now: str,
    *,
    by_tag: bool = False,
) -> SqliteQuery | None:
    """Returns the query for one part of the visibility filter.

    by_tag: find the entries by their tags, because no index serves this part of the visibility
        filter
    """
    bindings: list[Any] = []
    if is_by_name(wanted):
        source = _BY.format("entries_by_name")
    elif wanted.value_index is not None and wanted.value_index.is_complete:
        source = _BY.format("entries_by_id")
    else:
        source = _source(execute, wanted)
    if wanted.tags:
        tagged = _all_tags(execute, wanted, owners)
        if tagged is None:
            return None
        source, bindings = _THROUGH.format(tagged[0]), tagged[1]
    conditions = list(row_conditions(wanted, reachable, now))
    if wanted.tags_any:
        numbers = [
            number for tag in wanted.tags_any for number, _ in _tag(execute, wanted, tag, owners)
        ]
        if not numbers:
            return None
        if by_tag and not wanted.tags:
            text, bindings = _tagged("DISTINCT entry", wanted.tenant, numbers)
            source = _THROUGH.format(text)
        else:
            text, values = _tagged("entry", wanted.tenant, numbers)
            conditions.append((f"e.number IN ({text})", values))
    text, values = _met_by(wanted, conditions)
    return SqliteQuery([QueryPart(source, text, [*bindings, *values])], wanted)


def _source(execute: Execute, wanted: EntryFilter) -> str:
    """Returns the table, with the index of kinds if the tenant has few entries of the wanted kind:
    those of an owner may be many, all of which would be read."""
    if wanted.kind is None:
        return "entries e"
    bindings = (wanted.tenant, wanted.kind, _FEW_OF_KIND + 1)
    for (count,) in execute(_KIND_COUNT, bindings):
        if count <= _FEW_OF_KIND:
            return _BY.format("entries_by_kind")
    return "entries e"


def _part(source: str, wanted: EntryFilter, reachable: Condition, now: str) -> QueryPart:
    return QueryPart(source, *_met_by(wanted, row_conditions(wanted, reachable, now)))


def _met_by(wanted: EntryFilter, conditions: Iterable[Condition]) -> Condition:
    """Returns the conditions with `where`, which is computed only for entries that meet the others:
    its duration must tell nothing about an entry that is not visible."""
    text, values = all_of(conditions)
    if wanted.where is None:
        return text, values
    where, bindings = compile_where(wanted.where, wanted.met or ())
    return f"{text} AND CASE WHEN {text} THEN {where} END", [*values, *values, *bindings]


def _work_conditions(
    wanted: EntryFilter, visibility: VisibilityFilter
) -> Iterable[tuple[str, Condition]]:
    """Yields each kind of access through work, with the index range for it.

    Without the range the planner would scan all entries of a tenant in order.
    """
    for index, column, names, further in (
        ("entries_by_task", "e.task_id", visibility.tasks, ""),
        ("entries_by_intent", "e.intent_id", visibility.intents, ""),
        ("entries_by_intent", "e.intent_id", visibility.coordinated, " AND e.task_id IS NOT NULL"),
    ):
        if names:
            text, values = among(column, names)
            yield _BY.format(index), (f"{text} AND e.tier = 'working'{further}", values)
    if visibility.episodic:
        named = wanted.namespace is not None and wanted.key is not None
        text, values = among("e.owner", visibility.episodic)
        source = _BY.format("entries_by_name" if named else "entries_by_owner")
        yield source, (f"{text} AND e.tier = 'episodic'", values)
    if visibility.session_owners:
        named = is_by_name(wanted)
        text, values = among("e.owner", visibility.session_owners)
        source = _BY.format("entries_by_name" if named else "entries_by_owner")
        yield source, (f"{text} AND e.tier = 'session'", values)
    if visibility.by_group:
        text, values = among("e.owner", tuple({owner for _, owner in visibility.by_group}))
        pairs = msgspec.json.encode(visibility.by_group).decode()
        condition = f"{text} AND e.tier = 'episodic' AND {_BY_GROUP}"
        yield _BY.format("entries_by_owner"), (condition, [*values, pairs])


def _owners_of_work(execute: Execute, tenant: str, visibility: VisibilityFilter) -> Iterable[str]:
    """Returns the owners of the memory that is accessible through work, and possibly more."""
    yield from visibility.episodic
    yield from visibility.session_owners
    yield from (owner for _, owner in visibility.by_group)
    for index, column, names in (
        ("entries_by_task", "task_id", visibility.tasks),
        ("entries_by_intent", "intent_id", (*visibility.intents, *visibility.coordinated)),
    ):
        if names:
            text, values = among(column, names)
            statement = (
                f"SELECT DISTINCT owner FROM entries INDEXED BY {index}"
                f" WHERE tenant = ? AND {text} AND tier = 'working'"
            )
            for row in execute(statement, (tenant, *values)):
                yield row[0]


def _tags_of_row(wanted: EntryFilter) -> Iterable[Condition]:
    """Returns the conditions on tags for few rows: no task has so many that an index would help."""
    tags = [name_forms(tag) for tag in wanted.tags]
    for names in [*tags, forms_of_names(wanted.tags_any)]:
        if names:
            text, values = among("value", names)
            yield _HAS_TAG.format(text), values


def _tag(
    execute: Execute, wanted: EntryFilter, tag: str, owners: tuple[str, ...]
) -> list[tuple[int, int]]:
    """Returns the number of a tag for each of its owners, and the count of its entries."""
    text, values = all_of([among("owner", owners), among("tag", name_forms(tag))])
    statement = f"SELECT number, entries FROM tags WHERE tenant = ? AND {text}"
    return [(row[0], row[1]) for row in execute(statement, (wanted.tenant, *values))]


def _tagged(column: str, tenant: str, numbers: list[int]) -> Condition:
    """Returns the entries with any of the numbered tags."""
    condition, values = among("tag", numbers)
    return _TAGGED.format(column, condition), [tenant, *values]


def _all_tags(execute: Execute, wanted: EntryFilter, owners: tuple[str, ...]) -> Condition | None:
    """Returns a query for the entries that have all of the tags.

    The query either merges the sorted lists of all tags, or, if the rarest tag is much rarer than
    the others, looks its few entries up in the other lists.
    """
    found = []
    for tag in dict.fromkeys(wanted.tags):
        numbered = _tag(execute, wanted, tag, owners)
        if not numbered:
            return None
        # An entry may have a tag in two forms.
        column = "entry" if len(name_forms(tag)) == 1 else "DISTINCT entry"
        numbers = [number for number, _ in numbered]
        found.append((sum(entries for _, entries in numbered), column, numbers))
    found.sort()
    lists = [_tagged(column, wanted.tenant, numbers) for _, column, numbers in found]
    bindings = [value for _, values in lists for value in values]
    if len(lists) == 1:
        return lists[0][0], bindings
    rarest, steps = found[0][0], sum(entries for entries, _, _ in found)
    if steps < rarest * (len(found) - 1) * _STEPS_PER_LOOKUP:
        return " INTERSECT ".join(text for text, _ in lists) + " ORDER BY entry DESC", bindings
    lookups = [f"EXISTS ({text} AND entry = first.entry)" for text, _ in lists[1:]]
    first = (
        lists[0][0]
        .replace("FROM entry_tags", "FROM entry_tags first")
        .replace("SELECT entry", "SELECT first.entry")
    )
    return " AND ".join([first, *lookups]), bindings


def _visible(visibility: VisibilityFilter, owners: tuple[str, ...]) -> Condition:
    """Returns the owner, or the namespace in tiers that are isolated by namespace."""
    if not visibility.namespaces:
        return among("e.owner", visibility.owners)
    shared, names = among("e.namespace", visibility.namespaces)
    if not visibility.owners:
        return f"e.owner = '' AND {shared}", names
    # The first term repeats the second so that an index on the owner serves both sides.
    owned, values = among("e.owner", owners)
    return f"{owned} AND (e.owner <> '' OR {shared})", [*values, *names]
