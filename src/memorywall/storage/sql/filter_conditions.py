"""The conditions of a filter on an entry of table `e`, as SQL of fixed parts.

A dialect gives the parts that differ and binds the values, which are only ever bound. The parts of
a condition are made in the order of its text, because a dialect may bind by position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from memorywall.records.filter import EntryFilter, ValueIndex
from memorywall.records.identifiers import name_forms
from memorywall.storage.entry_columns import after_position

_AFTER_EVERY_NAME = "\U0010ffff"
_OUTSIDE_SESSIONS = "(e.session_id IS NULL AND e.tier NOT IN ('working', 'session'))"


class FilterDialect(Protocol):
    """The differences between the stores."""

    @property
    def opaque(self) -> str:
        """The condition that SQL cannot read the value of an entry."""
        ...

    def add(self, value: str | int) -> str:
        """Binds a value; returns its placeholder."""
        ...

    def among(self, column: str, values: Sequence[str]) -> str:
        """Returns the condition that a column is one of some values."""
        ...

    def has_edge(
        self, relation: str, targets: Sequence[str], between: tuple[str, str] | None = None
    ) -> str:
        """Returns the condition that an entry has an edge to one of some targets, or to one between
        these two."""
        ...

    def is_about_only(self, subjects: Sequence[str]) -> str:
        """Returns the condition that an entry is about no other subjects."""
        ...

    def provenance(self, name: str) -> str:
        """Returns a field of the provenance of an entry as a text."""
        ...


def filter_conditions(wanted: EntryFilter, now: str, dialect: FilterDialect) -> Iterator[str]:
    """Returns the conditions of the filter and of the expiry, except those on the tier, on tags and
    of `where`."""
    add, among = dialect.add, dialect.among
    yield f"(e.expires_at IS NULL OR e.expires_at > {add(now)})"
    for comparison, value in (
        ("e.pinned =", None if wanted.pinned is None else int(wanted.pinned)),
        ("e.kind =", wanted.kind),
        ("e.state =", wanted.state),
        ("e.created_at >", wanted.created_after),
        ("e.created_at <", wanted.created_before),
        ("e.updated_at >", wanted.updated_after),
        ("e.updated_at <", wanted.updated_before),
        ("e.id <", wanted.before),
        ("e.owner <>", wanted.except_owner),
    ):
        if value is not None:
            yield f"{comparison} {add(value)}"
    for column, name in (
        ("e.agent_id", wanted.agent_id),
        ("e.key", wanted.key),
        ("e.task_id", wanted.task_id),
        ("e.intent_id", wanted.intent_id),
        ("e.session_id", wanted.session_id),
    ):
        if name is not None:
            yield among(column, name_forms(name))
    if wanted.namespace is not None:
        yield among("e.namespace", (wanted.namespace, *wanted.aliases))
    if wanted.namespace_prefix:
        prefixes = (wanted.namespace_prefix, *wanted.aliases)
        yield _any_of([_begins("e.namespace", one, dialect) for one in prefixes])
    if wanted.key_prefix:
        yield _any_of([_begins("e.key", one, dialect) for one in name_forms(wanted.key_prefix)])
    yield from _conditions_of_meaning(wanted, dialect)
    if wanted.position is not None:
        sign, columns = after_position(wanted)
        position = ", ".join(add(one) for one in wanted.position[-len(columns) :])
        yield f"({', '.join(columns)}) {sign} ({position})"
    if wanted.opaque:
        yield dialect.opaque
    if wanted.value_index is not None:
        yield _condition_of_index(wanted.value_index, dialect)


def _conditions_of_meaning(wanted: EntryFilter, dialect: FilterDialect) -> Iterator[str]:
    """Returns the conditions on status, subjects and origin of an entry."""
    if wanted.only_in is not None:
        yield dialect.among("e.namespace", wanted.only_in)
    if wanted.statuses:
        yield dialect.among("e.status", wanted.statuses)
    if wanted.only_about is not None:
        yield dialect.is_about_only(wanted.only_about)
    if wanted.only_session is not None:
        yield f"(e.session_id = {dialect.add(wanted.only_session)} OR {_OUTSIDE_SESSIONS})"
    if wanted.listed_only and wanted.kind is None:
        yield "e.listed = 1"
    for name, value in (("origin", wanted.origin), ("source", wanted.source)):
        if value is not None:
            yield f"{dialect.provenance(name)} = {dialect.add(value)}"
    if wanted.about:
        yield dialect.has_edge("about", wanted.about)


def _condition_of_index(index: ValueIndex, dialect: FilterDialect) -> str:
    """Returns the condition that an entry has one of the rows of an index, or need not have one."""
    ways = [dialect.has_edge(index.relation, index.targets, index.between)]
    if not index.in_all_tiers:
        ways.append("e.owner <> ''")
    if index.since is not None:
        ways.append(f"e.updated_at <= {dialect.add(index.since)}")
    if index.since_version is not None:
        ways.append(f"e.kind_version < {dialect.add(index.since_version)}")
    return _any_of(ways)


def _begins(column: str, prefix: str, dialect: FilterDialect) -> str:
    start, end = dialect.add(prefix), dialect.add(prefix + _AFTER_EVERY_NAME)
    return f"{column} >= {start} AND {column} < {end}"


def _any_of(conditions: Sequence[str]) -> str:
    if len(conditions) == 1:
        return conditions[0]
    return f"({' OR '.join(f'({one})' for one in conditions)})"
