"""The conditions on a row in a search, as SQL of fixed parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from memorywall.records.filter import EntryFilter, ValueIndex
from memorywall.records.tier import Tier
from memorywall.storage.entry_columns import after_position
from memorywall.storage.sqlite.conditions import OPAQUE

Condition = tuple[str, list[Any]]
"""The text of a condition, and its bindings."""

_ABOUT = "e.id IN (SELECT entry FROM edges WHERE tenant = ? AND relation = 'about' AND {})"
_INDEXED = "SELECT entry FROM edges WHERE tenant = ? AND relation = ? AND {}"
_ABOUT_NOBODY_ELSE = (
    "(e.subjects = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(e.subjects) WHERE NOT ({})))"
)
_OF_SESSION = (
    "(e.session_id = ? OR (e.session_id IS NULL AND e.tier NOT IN ('working', 'session')))"
)
_AFTER_EVERY_NAME = "\U0010ffff"


def row_conditions(wanted: EntryFilter, reachable: Condition, now: str) -> Iterable[Condition]:
    """Returns the conditions of the filter, the visibility filter and the expiry."""
    yield "e.tenant = ?", [wanted.tenant]
    yield reachable
    yield "(e.expires_at IS NULL OR e.expires_at > ?)", [now]
    tiers = wanted.tiers
    if not tiers and is_by_name(wanted):
        # With all columns named, the index by name finds the few possible entries.
        tiers = tuple(Tier)
    if tiers:
        yield among("e.tier", tuple(tier.value for tier in tiers))
    for column, value in (
        ("agent_id", wanted.agent_id),
        ("key", wanted.key),
        ("task_id", wanted.task_id),
        ("intent_id", wanted.intent_id),
        ("session_id", wanted.session_id),
        ("pinned", wanted.pinned),
        ("kind", wanted.kind),
        ("state", wanted.state),
    ):
        if value is not None:
            yield f"e.{column} = ?", [value]
    yield from _conditions_of_meaning(wanted)
    if wanted.namespace is not None:
        yield among("e.namespace", (wanted.namespace, *wanted.aliases))
    if wanted.namespace_prefix:
        prefixes = (wanted.namespace_prefix, *wanted.aliases)
        ranges = [("e.namespace >= ? AND e.namespace < ?", [one, one + _AFTER_EVERY_NAME])
                  for one in prefixes]  # fmt: skip
        yield ranges[0] if len(ranges) == 1 else any_of(ranges)
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
    """Returns the conditions on status, subjects and origin of an entry."""
    if wanted.only_in is not None:
        yield among("e.namespace", wanted.only_in)
    if wanted.statuses:
        yield among("e.status", wanted.statuses)
    if wanted.only_about is not None:
        text, values = among("value", wanted.only_about)
        yield _ABOUT_NOBODY_ELSE.format(text), values
    if wanted.only_session is not None:
        yield _OF_SESSION, [wanted.only_session]
    if wanted.listed_only and wanted.kind is None:
        yield "e.listed = 1", []
    for name, value in (("origin", wanted.origin), ("source", wanted.source)):
        if value is not None:
            yield f"e.provenance ->> '$.{name}' = ?", [value]
    if wanted.about:
        text, values = among("target", wanted.about)
        yield _ABOUT.format(text), [wanted.tenant, *values]


def _condition_of_index(index: ValueIndex, tenant: str) -> Condition:
    """Returns the condition that an entry has one of the rows of an index, or need not have one."""
    text, values = among("target", index.targets)
    rows, bindings = _INDEXED.format(text), [tenant, index.relation, *values]
    if index.between is not None:
        rows += f" UNION ALL {_INDEXED.format('target BETWEEN ? AND ?')}"
        bindings += [tenant, index.relation, *index.between]
    ways: list[Condition] = [(f"e.id IN ({rows})", bindings)]
    if not index.in_all_tiers:
        ways.append(("e.owner <> ''", []))
    if index.since is not None:
        ways.append(("e.updated_at <= ?", [index.since]))
    if index.since_version is not None:
        ways.append(("e.kind_version < ?", [index.since_version]))
    return any_of(ways) if len(ways) > 1 else ways[0]


def is_by_name(wanted: EntryFilter) -> bool:
    """Returns whether the query is a look-up: few entries of each tier and owner share a name, one
    per session."""
    return wanted.key is not None and wanted.namespace is not None


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Returns the conjunction of some conditions."""
    texts, bindings = [], []
    for text, values in conditions:
        texts.append(text)
        bindings.extend(values)
    return " AND ".join(texts), bindings


def any_of(conditions: list[Condition]) -> Condition:
    """Returns the disjunction of some conditions."""
    bindings = [value for _, values in conditions for value in values]
    return f"({' OR '.join(f'({text})' for text, _ in conditions)})", bindings


def among(column: str, values: tuple[str, ...] | list[int]) -> Condition:
    """Returns a condition that the column is one of the values; long lists share one statement."""
    if len(values) == 1:
        return f"{column} = ?", [values[0]]
    if len(values) <= 4:
        return f"{column} IN ({', '.join('?' * len(values))})", list(values)
    return f"{column} IN (SELECT value FROM json_each(?))", [msgspec.json.encode(values).decode()]
