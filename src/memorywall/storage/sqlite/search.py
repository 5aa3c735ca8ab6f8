"""The query of RFC-0015 section 4.1 as SQL.

The conditions are put together from fixed pieces; what a caller sends is only ever bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from memorywall.records.decision import Reach
from memorywall.records.filter import Filter
from memorywall.storage.sqlite.statements import load

Execute = Callable[..., Iterable[tuple[Any, ...]]]

_COLUMNS = "e." + load("entries")["columns"].replace("\n", " ").replace(", ", ", e.")
_TAGGED = "SELECT {} FROM entry_tags WHERE tenant = ? AND {}"
_AFTER_EVERY_NAME = "\U0010ffff"
_STEPS_PER_LOOKUP = 6
"""How many steps along a sorted list of entries take the time of one lookup in it (measured)."""


@dataclass(frozen=True, slots=True)
class Query:
    """A search, ready to run: where the rows come from and which of them count."""

    source: str
    conditions: str
    bindings: tuple[Any, ...]
    limit: int | None
    offset: int

    def page(self) -> tuple[str, tuple[Any, ...]]:
        """The statement for one page, newest first."""
        statement = (
            f"SELECT {_COLUMNS} FROM {self.source} WHERE {self.conditions}"
            " ORDER BY e.id DESC LIMIT ? OFFSET ?"
        )
        limit = -1 if self.limit is None else self.limit
        return statement, (*self.bindings, limit, self.offset)

    def count(self) -> tuple[str, tuple[Any, ...]]:
        """The statement for how many rows there are on all pages."""
        return f"SELECT count(*) FROM {self.source} WHERE {self.conditions}", self.bindings


def plan(execute: Execute, wanted: Filter, reach: Reach, now: str) -> Query | None:
    """The query for what is wanted, or None when a tag nothing has already rules everything out."""
    source, bindings = "entries e", []
    owners = (*reach.owners, "") if reach.namespaces else reach.owners
    if wanted.tags:
        tagged = _all_tags(execute, wanted, owners)
        if tagged is None:
            return None
        source = f"({tagged[0]}) t CROSS JOIN entries e ON e.number = t.entry"
        bindings = tagged[1]
    conditions = []
    for condition, values in _conditions(wanted, reach, owners, now):
        conditions.append(condition)
        bindings.extend(values)
    if wanted.tags_any:
        numbers = [
            number for tag in wanted.tags_any for number, _ in _tag(execute, wanted, tag, owners)
        ]
        if not numbers:
            return None
        tagged_any, values = _tagged("entry", wanted.tenant, numbers)
        conditions.append(f"e.number IN ({tagged_any})")
        bindings.extend(values)
    return Query(source, " AND ".join(conditions), tuple(bindings), wanted.limit, wanted.offset)


def _tag(
    execute: Execute, wanted: Filter, tag: str, owners: tuple[str, ...]
) -> list[tuple[int, int]]:
    """The number of a tag with each of the owners who have it, and how many entries do."""
    owned, values = _among("owner", owners)
    statement = f"SELECT number, entries FROM tags WHERE tenant = ? AND {owned} AND tag = ?"
    return [(row[0], row[1]) for row in execute(statement, (wanted.tenant, *values, tag))]


def _tagged(column: str, tenant: str, numbers: list[int]) -> tuple[str, list[Any]]:
    """The entries with any of the numbered tags."""
    condition, values = _among("tag", numbers)
    return _TAGGED.format(column, condition), [tenant, *values]


def _all_tags(
    execute: Execute, wanted: Filter, owners: tuple[str, ...]
) -> tuple[str, list[Any]] | None:
    """A query for the entries that have all of the tags.

    Either it runs through the sorted lists of all tags side by side, or, where the rarest tag is
    much rarer than the others, looks its few entries up in the other lists.
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


def _among(column: str, values: tuple[str, ...] | list[int]) -> tuple[str, list[Any]]:
    """A condition that the column is one of the values; long lists share one statement."""
    if len(values) == 1:
        return f"{column} = ?", [values[0]]
    if len(values) <= 4:
        return f"{column} IN ({', '.join('?' * len(values))})", list(values)
    return f"{column} IN (SELECT value FROM json_each(?))", [msgspec.json.encode(values).decode()]


def _conditions(
    wanted: Filter, reach: Reach, owners: tuple[str, ...], now: str
) -> Iterable[tuple[str, Iterable[Any]]]:
    """Each condition of the filter, the reach and the expiry, with what is bound in it."""
    yield "e.tenant = ?", (wanted.tenant,)
    yield _reachable(reach, owners)
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
    for comparison, bound in (
        ("e.updated_at > ?", wanted.updated_after),
        ("e.updated_at < ?", wanted.updated_before),
        ("e.id < ?", wanted.before),
    ):
        if bound is not None:
            yield comparison, (bound,)


def _reachable(reach: Reach, owners: tuple[str, ...]) -> tuple[str, Iterable[Any]]:
    """Behind an agent's wall by owner, behind a namespace's by its name."""
    if not reach.namespaces:
        return _among("e.owner", reach.owners)
    shared, names = _among("e.namespace", reach.namespaces)
    if not reach.owners:
        return f"e.owner = '' AND {shared}", names
    # The first term repeats the second so that an index led by the owner serves both sides.
    owned, values = _among("e.owner", owners)
    return f"{owned} AND (e.owner <> '' OR {shared})", [*values, *names]
