"""The query of RFC-0015 section 4.1 as SQL.

The conditions are put together from fixed pieces; what a caller sends is only ever bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from memorywall.records.decision import Reach
from memorywall.records.filter import Filter
from memorywall.storage.sqlite.statements import load

Execute = Callable[..., Iterable[tuple[Any, ...]]]

_COLUMNS = "e." + load("entries")["columns"].replace("\n", " ").replace(", ", ", e.")
# Up to this many entries of the rarest tag are looked up one by one in the other tags; beyond, it
# is faster to run through the sorted lists of all the tags side by side.
_FEW = 64
_PROBE = f"SELECT count(*) FROM (SELECT 1 FROM entry_tags WHERE {{}} LIMIT {_FEW + 1})"
_AFTER_EVERY_NAME = "\U0010ffff"


def page(execute: Execute, wanted: Filter, reach: Reach, now: str) -> Iterable[tuple[Any, ...]]:
    """The rows of one page, newest first."""
    source, conditions, bindings = _build(execute, wanted, reach, now)
    limit = -1 if wanted.limit is None else wanted.limit
    return execute(
        f"SELECT {_COLUMNS} FROM {source} WHERE {conditions}"
        " ORDER BY e.number DESC LIMIT ? OFFSET ?",
        (*bindings, limit, wanted.offset),
    )


def count(execute: Execute, wanted: Filter, reach: Reach, now: str) -> int:
    """How many rows there are on all pages."""
    source, conditions, bindings = _build(execute, wanted, reach, now)
    for row in execute(f"SELECT count(*) FROM {source} WHERE {conditions}", bindings):
        return int(row[0])
    return 0


def _build(execute: Execute, wanted: Filter, reach: Reach, now: str) -> tuple[str, str, list[Any]]:
    source, bindings = "entries e", []
    if wanted.tags:
        tagged, bindings = _tagged(execute, wanted, reach)
        source = f"({tagged}) t CROSS JOIN entries e ON e.number = t.number"
    conditions = []
    for condition, values in _conditions(wanted, reach, now):
        conditions.append(condition)
        bindings.extend(values)
    return source, " AND ".join(conditions), bindings


def _owners(reach: Reach) -> tuple[str, ...]:
    return (*reach.owners, "") if reach.namespaces else reach.owners


def _among(column: str, values: tuple[str, ...]) -> tuple[str, list[Any]]:
    """A condition that the column is one of the values, whose text depends on few of them only."""
    if len(values) == 1:
        return f"{column} = ?", [values[0]]
    if len(values) <= 4:
        return f"{column} IN ({', '.join('?' * len(values))})", list(values)
    return f"{column} IN (SELECT value FROM json_each(?))", [msgspec.json.encode(values).decode()]


def _tagged(execute: Execute, wanted: Filter, reach: Reach) -> tuple[str, list[Any]]:
    """A query for the numbers of the entries that have all of the tags."""
    owned, owners = _among("owner", _owners(reach))
    one_tag = f"tenant = ? AND {owned} AND tag = ?"

    def bound(tag: str) -> list[Any]:
        return [wanted.tenant, *owners, tag]

    def frequency(tag: str) -> int:
        for row in execute(_PROBE.format(one_tag), bound(tag)):
            return int(row[0])
        return 0

    tags = list(dict.fromkeys(wanted.tags))
    select = f"SELECT number FROM entry_tags WHERE {one_tag}"
    if len(tags) == 1:
        return select, bound(tags[0])
    frequencies = {tag: frequency(tag) for tag in tags}
    tags.sort(key=frequencies.__getitem__)
    bindings = [value for tag in tags for value in bound(tag)]
    if frequencies[tags[0]] > _FEW:
        return " INTERSECT ".join([select] * len(tags)) + " ORDER BY number DESC", bindings
    others = [f"EXISTS (SELECT 1 FROM entry_tags WHERE {one_tag} AND number = t.number)"]
    first = f"SELECT t.number FROM entry_tags t WHERE {one_tag}"
    return " AND ".join([first, *others * (len(tags) - 1)]), bindings


def _conditions(wanted: Filter, reach: Reach, now: str) -> Iterable[tuple[str, Iterable[Any]]]:
    """Each condition of the filter, the reach and the expiry, with what is bound in it."""
    yield "e.tenant = ?", (wanted.tenant,)
    yield _reachable(reach)
    yield "(e.expires_at IS NULL OR e.expires_at > ?)", (now,)
    if wanted.tiers:
        yield _among("e.tier", tuple(tier.value for tier in wanted.tiers))
    for column, value in (
        ("agent_id", wanted.agent_id),
        ("namespace", wanted.namespace),
        ("key", wanted.key),
        ("task_id", wanted.task_id),
        ("intent_id", wanted.intent_id),
        ("pinned", wanted.pinned),
    ):
        if value is not None:
            yield f"e.{column} = ?", (value,)
    if wanted.namespace_prefix:
        yield (
            "e.namespace >= ? AND e.namespace < ?",
            (wanted.namespace_prefix, wanted.namespace_prefix + _AFTER_EVERY_NAME),
        )
    if wanted.tags_any:
        owned, owners = _among("owner", _owners(reach))
        tagged, tags = _among("tag", wanted.tags_any)
        yield (
            f"e.number IN (SELECT number FROM entry_tags WHERE tenant = ? AND {owned} AND {tagged})",
            (wanted.tenant, *owners, *tags),
        )
    for comparison, bound in (
        ("e.updated_at > ?", wanted.updated_after),
        ("e.updated_at < ?", wanted.updated_before),
        ("e.id < ?", wanted.before),
    ):
        if bound is not None:
            yield comparison, (bound,)


def _reachable(reach: Reach) -> tuple[str, Iterable[Any]]:
    """Behind an agent's wall by owner, behind a namespace's by its name."""
    if not reach.namespaces:
        return _among("e.owner", reach.owners)
    shared, names = _among("e.namespace", reach.namespaces)
    if not reach.owners:
        return f"e.owner = '' AND {shared}", names
    # The first term repeats the second so that an index led by the owner serves both sides.
    owned, owners = _among("e.owner", _owners(reach))
    return f"{owned} AND (e.owner <> '' OR {shared})", [*owners, *names]
