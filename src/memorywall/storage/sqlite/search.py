"""The query of RFC-0015 section 4.1 as SQL of fixed parts; input of callers is only ever bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from memorywall.records.decision import VisibilityFilter
from memorywall.records.filter import EntryFilter, ValueIndex
from memorywall.records.tier import Tier
from memorywall.storage.entry_columns import after_position
from memorywall.storage.filter_intersection import intersect_filter, within_limits
from memorywall.storage.sqlite.conditions import OPAQUE, compile_where
from memorywall.storage.sqlite.search_statement import QueryPart, SqliteQuery

Execute = Callable[..., Iterable[tuple[Any, ...]]]
Condition = tuple[str, list[Any]]
"""The text of a condition, and its bindings."""

_TAGGED = "SELECT {} FROM entry_tags WHERE tenant = ? AND {}"
_HAS_TAG = "EXISTS (SELECT 1 FROM json_each(e.tags) WHERE {})"
_BY = "entries e INDEXED BY {}"
_THROUGH = "({}) t CROSS JOIN entries e ON e.number = t.entry"
_ABOUT = "e.id IN (SELECT entry FROM edges WHERE tenant = ? AND relation = 'about' AND {})"
_INDEXED = "e.id IN (SELECT entry FROM edges WHERE tenant = ? AND relation = ? AND {})"
_ABOUT_NOBODY_ELSE = (
    "(e.subjects = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(e.subjects) WHERE NOT ({})))"
)
_BY_GROUP = "(e.namespace, e.owner) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))"
_AFTER_EVERY_NAME = "\U0010ffff"
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
        tagged = _all_of([_any_of(ways), *_tags_of_row(wanted)])
        part = _part(_BY.format("entries_by_task"), wanted, tagged, now)
        return SqliteQuery([part], wanted)
    if wanted.tags or wanted.tags_any:
        owners = tuple({*owners, *_owners_of_work(execute, wanted.tenant, visibility)})
        return _plan(execute, wanted, _any_of(ways), owners, now, by_tag=True)
    parts = [_part("entries e", wanted, ways[0], now)] if owners else []
    for source, way in work:
        earlier, values = _any_of(ways[: len(parts)])
        another = _all_of([way, (f"{earlier} IS NOT TRUE", values)]) if parts else way
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
    source, bindings = "entries e", []
    if _is_by_name(wanted):
        source = _BY.format("entries_by_name")
    elif wanted.value_index is not None and wanted.value_index.is_complete:
        source = _BY.format("entries_by_id")
    if wanted.tags:
        tagged = _all_tags(execute, wanted, owners)
        if tagged is None:
            return None
        source, bindings = _THROUGH.format(tagged[0]), tagged[1]
    conditions = list(_conditions(wanted, reachable, now))
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


def _is_by_name(wanted: EntryFilter) -> bool:
    """Returns whether the query is a look-up: few entries of each tier and owner share a name, one
    per session."""
    return wanted.key is not None and wanted.namespace is not None


def _part(source: str, wanted: EntryFilter, reachable: Condition, now: str) -> QueryPart:
    return QueryPart(source, *_met_by(wanted, _conditions(wanted, reachable, now)))


def _met_by(wanted: EntryFilter, conditions: Iterable[Condition]) -> Condition:
    """Returns the conditions with `where`, which is computed only for entries that meet the others:
    its duration must tell nothing about an entry that is not visible."""
    text, values = _all_of(conditions)
    if wanted.where is None:
        return text, values
    where, bindings = compile_where(wanted.where, wanted.met)
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
            text, values = _among(column, names)
            yield _BY.format(index), (f"{text} AND e.tier = 'working'{further}", values)
    if visibility.episodic:
        named = wanted.namespace is not None and wanted.key is not None
        text, values = _among("e.owner", visibility.episodic)
        source = _BY.format("entries_by_name" if named else "entries_by_owner")
        yield source, (f"{text} AND e.tier = 'episodic'", values)
    if visibility.by_group:
        text, values = _among("e.owner", tuple({owner for _, owner in visibility.by_group}))
        pairs = msgspec.json.encode(visibility.by_group).decode()
        condition = f"{text} AND e.tier = 'episodic' AND {_BY_GROUP}"
        yield _BY.format("entries_by_owner"), (condition, [*values, pairs])


def _owners_of_work(execute: Execute, tenant: str, visibility: VisibilityFilter) -> Iterable[str]:
    """Returns the owners of the memory that is accessible through work, and possibly more."""
    yield from visibility.episodic
    yield from (owner for _, owner in visibility.by_group)
    for index, column, names in (
        ("entries_by_task", "task_id", visibility.tasks),
        ("entries_by_intent", "intent_id", (*visibility.intents, *visibility.coordinated)),
    ):
        if names:
            text, values = _among(column, names)
            statement = (
                f"SELECT DISTINCT owner FROM entries INDEXED BY {index}"
                f" WHERE tenant = ? AND {text} AND tier = 'working'"
            )
            for row in execute(statement, (tenant, *values)):
                yield row[0]


def _tags_of_row(wanted: EntryFilter) -> Iterable[Condition]:
    """Returns the conditions on tags for few rows: no task has so many that an index would help."""
    for tag in wanted.tags:
        yield _HAS_TAG.format("value = ?"), [tag]
    if wanted.tags_any:
        text, values = _among("value", wanted.tags_any)
        yield _HAS_TAG.format(text), values


def _all_of(conditions: Iterable[Condition]) -> Condition:
    texts, bindings = [], []
    for text, values in conditions:
        texts.append(text)
        bindings.extend(values)
    return " AND ".join(texts), bindings


def _any_of(conditions: list[Condition]) -> Condition:
    bindings = [value for _, values in conditions for value in values]
    return f"({' OR '.join(f'({text})' for text, _ in conditions)})", bindings


def _tag(
    execute: Execute, wanted: EntryFilter, tag: str, owners: tuple[str, ...]
) -> list[tuple[int, int]]:
    """Returns the number of a tag for each of its owners, and the count of its entries."""
    owned, values = _among("owner", owners)
    statement = f"SELECT number, entries FROM tags WHERE tenant = ? AND {owned} AND tag = ?"
    return [(row[0], row[1]) for row in execute(statement, (wanted.tenant, *values, tag))]


def _tagged(column: str, tenant: str, numbers: list[int]) -> Condition:
    """Returns the entries with any of the numbered tags."""
    condition, values = _among("tag", numbers)
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
        found.append((sum(entries for _, entries in numbered), [number for number, _ in numbered]))
    found.sort()
    lists = [_tagged("entry", wanted.tenant, numbers) for _, numbers in found]
    bindings = [value for _, values in lists for value in values]
    if len(lists) == 1:
        return lists[0][0], bindings
    rarest, steps = found[0][0], sum(entries for entries, _ in found)
    if steps < rarest * (len(found) - 1) * _STEPS_PER_LOOKUP:
        return " INTERSECT ".join(text for text, _ in lists) + " ORDER BY entry DESC", bindings
    lookups = [f"EXISTS ({text} AND entry = first.entry)" for text, _ in lists[1:]]
    first = (
        lists[0][0]
        .replace("FROM entry_tags", "FROM entry_tags first")
        .replace("SELECT entry", "SELECT first.entry")
    )
    return " AND ".join([first, *lookups]), bindings


def _among(column: str, values: tuple[str, ...] | list[int]) -> Condition:
    """Returns a condition that the column is one of the values; long lists share one statement."""
    if len(values) == 1:
        return f"{column} = ?", [values[0]]
    if len(values) <= 4:
        return f"{column} IN ({', '.join('?' * len(values))})", list(values)
    return f"{column} IN (SELECT value FROM json_each(?))", [msgspec.json.encode(values).decode()]


def _conditions(wanted: EntryFilter, reachable: Condition, now: str) -> Iterable[Condition]:
    """Returns the conditions of the filter, the visibility filter and the expiry."""
    yield "e.tenant = ?", [wanted.tenant]
    yield reachable
    yield "(e.expires_at IS NULL OR e.expires_at > ?)", [now]
    tiers = wanted.tiers
    if not tiers and _is_by_name(wanted):
        # With all columns named, the index by name finds the few possible entries.
        tiers = tuple(Tier)
    if tiers:
        yield _among("e.tier", tuple(tier.value for tier in tiers))
    for column, value in (
        ("agent_id", wanted.agent_id),
        ("key", wanted.key),
        ("task_id", wanted.task_id),
        ("intent_id", wanted.intent_id),
        ("session_id", wanted.session_id),
        ("pinned", wanted.pinned),
        ("kind", wanted.kind),
        ("status", wanted.status),
        ("state", wanted.state),
    ):
        if value is not None:
            yield f"e.{column} = ?", [value]
    yield from _conditions_of_meaning(wanted)
    if wanted.namespace is not None:
        yield _among("e.namespace", (wanted.namespace, *wanted.aliases))
    if wanted.namespace_prefix:
        prefixes = (wanted.namespace_prefix, *wanted.aliases)
        ranges = [("e.namespace >= ? AND e.namespace < ?", [one, one + _AFTER_EVERY_NAME])
                  for one in prefixes]  # fmt: skip
        yield ranges[0] if len(ranges) == 1 else _any_of(ranges)
    if wanted.key_prefix:
        bounds = [wanted.key_prefix, wanted.key_prefix + _AFTER_EVERY_NAME]
        yield "e.key >= ? AND e.key < ?", bounds
    for comparison, bound in (
        ("e.created_at > ?", wanted.created_after),
        ("e.created_at < ?", wanted.created_before),
        ("e.updated_at > ?", wanted.updated_after),
        ("e.updated_at < ?", wanted.updated_before),
        ("e.id < ?", wanted.before),
        ("e.owner <> ?", wanted.except_owner),
    ):
        if bound is not None:
            yield comparison, [bound]
    yield from _conditions_of_list(wanted)


def _conditions_of_list(wanted: EntryFilter) -> Iterable[Condition]:
    """Returns the conditions of the position, and those that find the entries of `where`."""
    if wanted.position is not None:
        comparison, columns = after_position(wanted)
        position = wanted.position[-len(columns) :]
        row = f"({', '.join(columns)}) {comparison} ({', '.join('?' * len(columns))})"
        yield row, list(position)
    if wanted.opaque:
        yield OPAQUE, []
    if wanted.value_index is not None:
        yield _condition_of_index(wanted.value_index, wanted.tenant)


def _conditions_of_meaning(wanted: EntryFilter) -> Iterable[Condition]:
    """Returns the conditions on kind, subjects and origin of an entry."""
    if wanted.only_in is not None:
        yield _among("e.namespace", wanted.only_in)
    if wanted.only_about is not None:
        text, values = _among("value", wanted.only_about)
        yield _ABOUT_NOBODY_ELSE.format(text), values
    if wanted.listed_only and wanted.kind is None:
        yield "e.listed = 1", []
    for name, value in (("origin", wanted.origin), ("source", wanted.source)):
        if value is not None:
            yield f"e.provenance ->> '$.{name}' = ?", [value]
    if wanted.about:
        text, values = _among("target", wanted.about)
        yield _ABOUT.format(text), [wanted.tenant, *values]


def _condition_of_index(index: ValueIndex, tenant: str) -> Condition:
    """Returns the condition that an entry has one of the rows of an index, or need not have one."""
    text, values = _among("target", index.targets)
    ways: list[Condition] = [(_INDEXED.format(text), [tenant, index.relation, *values])]
    if not index.shared_only:
        ways.append(("e.owner <> ''", []))
    if index.since is not None:
        ways.append(("e.updated_at <= ?", [index.since]))
    return _any_of(ways) if len(ways) > 1 else ways[0]


def _visible(visibility: VisibilityFilter, owners: tuple[str, ...]) -> Condition:
    """Returns the owner, or the namespace in tiers that are isolated by namespace."""
    if not visibility.namespaces:
        return _among("e.owner", visibility.owners)
    shared, names = _among("e.namespace", visibility.namespaces)
    if not visibility.owners:
        return f"e.owner = '' AND {shared}", names
    # The first term repeats the second so that an index on the owner serves both sides.
    owned, values = _among("e.owner", owners)
    return f"{owned} AND (e.owner <> '' OR {shared})", [*values, *names]
