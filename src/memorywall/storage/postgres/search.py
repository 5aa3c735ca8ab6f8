"""The query of RFC-0015 section 4.1 as SQL for PostgreSQL.

Statements are assembled from fixed parts. Input of callers is only ever bound, and lists are bound
as arrays, so that few statements serve all requests and each is planned once.

A plan must be good for all bindings and all table sizes. So every search scans ranges of one index,
and `OFFSET 0` separates a range from outer conditions that could make the planner choose another
index. Entries are found by their tags without a join of tag lists, for which a planner without
statistics chooses nested loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import forms_of_names, name_forms
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.filter_intersection import intersect_filter, within_limits
from memorywall.storage.postgres.conditions import compile_where
from memorywall.storage.postgres.search_statement import (
    SearchBindings,
    SearchPart,
    SearchQuery,
    unite,
)
from memorywall.storage.rows import decode_rows, entry_from_row
from memorywall.storage.sql.access import RowReader
from memorywall.storage.sql.filter_conditions import filter_conditions

_TAGGED = "SELECT entry FROM entry_tags WHERE tenant = $1 AND owner = {owner} AND tag = {tag}"
_AMONG = " AND entry = ANY(ARRAY({}))"
_WORKING = (Tier.WORKING,)
_EVERY_TIER = tuple(Tier)
_BY_NAME = "key >= ''"
"""Always true; lets a statement use the index by name."""
_BY_OWNER = "created_at >= ''"
"""Always true; lets a statement use the index by owner."""


@dataclass(frozen=True, slots=True)
class _WorkCondition:
    """One part of the visibility filter.

    column: the column with one of `values`
    further: further conditions
    """

    column: str
    values: tuple[str, ...]
    tiers: tuple[Tier, ...]
    further: str = ""


async def search(
    reader: RowReader, wanted: EntryFilter, visibility: VisibilityFilter, now: str
) -> tuple[list[Entry], int]:
    """`port.EntryRepository.search`."""
    query = _plan(wanted, visibility, now)
    if query is None:
        return [], 0
    statement, bindings = query.page(wanted)
    rows = await reader.rows(statement, *bindings)
    entries = await decode_rows(reader, rows, entry_from_row)
    if not wanted.counted:
        return entries, len(entries)
    seen_all = wanted.limit is None or len(entries) < wanted.limit
    if seen_all and (entries or wanted.offset == 0):
        return entries, wanted.offset + len(entries)
    statement, bindings = query.count()
    row = await reader.row(statement, *bindings)
    return entries, row[0] if row else 0


async def search_each(
    reader: RowReader, searches: Sequence[tuple[EntryFilter, VisibilityFilter]], now: str
) -> list[list[Entry]]:
    """`port.EntryRepository.search_each`, as one statement."""
    planned = [
        (number, query.page(wanted))
        for number, (wanted, visibility) in enumerate(searches)
        if (query := _plan(wanted, visibility, now)) is not None
    ]
    pages: list[list[Entry]] = [[] for _ in searches]
    if planned:
        for row in await reader.rows(*unite(planned)):
            pages[row[0]].append(entry_from_row(row[2:]))
    return pages


async def count(
    reader: RowReader,
    wanted: EntryFilter,
    visibility: VisibilityFilter,
    now: str,
    at_most: int | None,
) -> Usage:
    """`port.EntryRepository.count`."""
    query = _plan(wanted, visibility, now)
    if query is None:
        return Usage()
    statement, bindings = query.measure(at_most)
    row = await reader.row(statement, *bindings)
    return Usage() if row is None else Usage(entries=row[0], bytes=row[1])


async def namespaces(
    reader: RowReader,
    wanted: EntryFilter,
    visibility: VisibilityFilter,
    now: str,
    after: str,
    limit: int,
) -> list[tuple[str, int]]:
    """`port.EntryRepository.namespaces`."""
    query = _plan(wanted, visibility, now)
    if query is None:
        return []
    statement, bindings = query.namespaces(after, limit)
    return [(row[0], row[1]) for row in await reader.rows(statement, *bindings)]


def _plan(wanted: EntryFilter, visibility: VisibilityFilter, now: str) -> SearchQuery | None:
    """Returns the query of a filter, or None if it can have no result."""
    wanted = within_limits(wanted, visibility)
    if visibility.has_work_access:
        visibility = intersect_filter(wanted, visibility)
    return None if visibility.is_empty else _Plan(wanted, visibility, now).query()


class _Plan:
    """Assembles one query."""

    def __init__(self, wanted: EntryFilter, visibility: VisibilityFilter, now: str) -> None:
        self._wanted = wanted
        self._visibility = visibility
        self._bound = SearchBindings(wanted.tenant)
        self._owners = (*visibility.owners, "") if visibility.namespaces else visibility.owners
        self._tiers = wanted.tiers or _EVERY_TIER
        self._conditions = list(filter_conditions(wanted, now, self._bound))
        self._where = None
        if wanted.where is not None:
            self._where = compile_where(wanted.where, wanted.met or (), self._bound.add)
        self._alternatives = list(self._work_conditions())

    def query(self) -> SearchQuery:
        """Returns the query with the conditions that leave the fewest entries to scan."""
        wanted = self._wanted
        for column, value in (("task_id", wanted.task_id), ("intent_id", wanted.intent_id)):
            if value is not None:
                way = _WorkCondition(column, name_forms(value), self._tiers)
                further = [self._visible(self._alternatives), *self._tags_of_row()]
                return SearchQuery([self._part(way, further)], self._bound)
        if wanted.tags or wanted.tags_any:
            return self._by_tags()
        if wanted.value_index is not None and wanted.value_index.is_complete:
            index = wanted.value_index
            rows = self._bound.edges(index.relation, index.targets, index.between)
            return self._found(f"SELECT DISTINCT entry FROM ({rows}) rows ORDER BY entry DESC")
        parts = []
        for place, way in enumerate(self._alternatives):
            earlier = self._alternatives[:place]
            further = [f"{self._visible(earlier)} IS NOT TRUE"] if earlier else []
            parts.append(self._part(way, further))
        return SearchQuery(parts, self._bound)

    def _work_conditions(self) -> Iterator[_WorkCondition]:
        """Yields each part of the visibility filter."""
        visibility, shared = self._visibility, ""
        if self._owners:
            if visibility.namespaces:
                # Entries in tiers that are isolated by namespace have no owner.
                shared = (
                    f"(e.owner <> '' OR e.namespace = {self._bound.any_of(visibility.namespaces)})"
                )
            yield _WorkCondition("owner", self._owners, self._tiers, shared)
        if visibility.tasks:
            yield _WorkCondition("task_id", visibility.tasks, _WORKING)
        if visibility.intents:
            yield _WorkCondition("intent_id", visibility.intents, _WORKING)
        if visibility.coordinated:
            yield _WorkCondition(
                "intent_id", visibility.coordinated, _WORKING, "e.task_id IS NOT NULL"
            )
        if visibility.episodic:
            yield _WorkCondition("owner", visibility.episodic, (Tier.EPISODIC,))
        if visibility.session_owners:
            yield _WorkCondition("owner", visibility.session_owners, (Tier.SESSION,))
        if visibility.by_group:
            namespaces, owners = zip(*visibility.by_group, strict=True)
            lists = f"{self._bound.add(namespaces)}::text[], {self._bound.add(owners)}::text[]"
            yield _WorkCondition(
                "owner",
                tuple(dict.fromkeys(owners)),
                (Tier.EPISODIC,),
                f"(e.namespace, e.owner) IN (SELECT * FROM unnest({lists}))",
            )

    def _visible(self, ways: list[_WorkCondition]) -> str:
        """Returns the condition that an entry matches any of some parts."""
        texts = []
        for way in ways:
            terms = [f"e.{way.column} = {self._bound.any_of(way.values)}"]
            if way.tiers is not self._tiers:
                terms.append(f"e.tier = {self._bound.any_of(way.tiers)}")
            texts.append(" AND ".join([*terms, way.further] if way.further else terms))
        return f"({' OR '.join(f'({text})' for text in texts)})"

    def _part(self, way: _WorkCondition, further: list[str]) -> SearchPart:
        """Returns the matching entries of one part of the visibility filter, with its further
        conditions."""
        ranges: list[str] = []
        terms = ["tenant = $1"]
        for column, values in ((way.column, way.values), ("tier", way.tiers)):
            if len(values) == 1:
                terms.append(f"{column} = {self._bound.add(values[0])}")
            else:
                ranges.append(
                    f"unnest({self._bound.array(values)}) AS of_{column} (wanted_{column})"
                )
                terms.append(f"{column} = wanted_{column}")
        wanted = self._wanted
        named = way.column == "owner" and wanted.namespace is not None
        if named:
            # Few entries of a range share a name, one per session, and the index by name finds
            # them.
            if wanted.aliases:
                names = self._bound.array((wanted.namespace or "", *wanted.aliases))
                ranges.append(f"unnest({names}) AS of_namespace (wanted_namespace)")
                terms.append("namespace = wanted_namespace")
            else:
                terms.append(f"namespace = {self._bound.add(wanted.namespace)}")
            if wanted.key is not None:
                keys, key = name_forms(wanted.key), "wanted_key"
                if len(keys) == 1:
                    key = self._bound.add(wanted.key)
                else:
                    ranges.append(f"unnest({self._bound.array(keys)}) AS of_key (wanted_key)")
                terms.append(f"key >= {key} AND key <= {key}")
            terms.append(f"{_BY_NAME} ORDER BY key" if wanted.key is not None else _BY_NAME)
        elif way.column == "owner":
            terms.append(_BY_OWNER)
        conditions = [*self._conditions, *([way.further] if way.further else []), *further]
        in_order = way.column == "owner" and not named
        return SearchPart(ranges, terms, in_order, conditions, self._where)

    def _by_tags(self) -> SearchQuery:
        """Returns entries found by their tags."""
        if self._visibility.has_work_access:
            before, owner = self._owners_of_work(), "ANY(ARRAY(SELECT owner FROM visible_owners))"
        else:
            before, owner = "", self._bound.any_of(self._owners)
        return self._found(self._tagged(owner), before)

    def _found(self, found: str, before: str = "") -> SearchQuery:
        """Returns the entries whose ids a query finds, the newest first.

        before: the text before the statement
        """
        ranges = [f"({found}) t"]
        within = ["tenant = $1", "id = t.entry"]
        conditions = [
            *self._conditions,
            self._visible(self._alternatives),
            f"e.tier = {self._bound.any_of(self._tiers)}",
        ]
        part = SearchPart(ranges, within, False, conditions, self._where)
        return SearchQuery([part], self._bound, before, "t.entry")

    def _tagged(self, owner: str) -> str:
        """Returns a query for the ids of the entries with the tags.

        The entries with one tag are looked up among those with the next. The scan skips from one
        match to the next, so that a much longer list costs no more than a short one.
        """
        wanted = [name_forms(tag) for tag in dict.fromkeys(self._wanted.tags)]
        tags = [forms[0] for forms in wanted if len(forms) == 1]
        bound, found = self._bound, ""
        before = self._wanted.before
        within = "" if before is None else f" AND entry < {bound.add(before)}"
        for tag in tags[:2]:
            among = _AMONG.format(found) if found else ""
            found = _TAGGED.format(owner=owner, tag=bound.add(tag)) + within + among
        if tags[2:]:
            among = _AMONG.format(found)
            tagged = _TAGGED.format(owner=owner, tag=f"ANY({bound.array(tags[2:])})")
            count = bound.add(len(tags) - 2)
            found = f"{tagged}{among} GROUP BY entry HAVING count(*) = {count} ORDER BY entry DESC"
        # Tags of which the entries must have one: `tags_any`, and the forms of one tag.
        several = [forms for forms in wanted if len(forms) > 1]
        if self._wanted.tags_any:
            several.append(forms_of_names(self._wanted.tags_any))
        for names in several:
            among = _AMONG.format(found) if found else within
            tag = f"ANY({bound.array(names)})"
            tagged = _TAGGED.format(owner=owner, tag=tag)
            found = f"SELECT DISTINCT entry FROM ({tagged}{among}) found ORDER BY entry DESC"
        return found

    def _owners_of_work(self) -> str:
        """Returns the owners in the visibility filter, and possibly more, `visible_owners`."""
        visibility, bound = self._visibility, self._bound
        by_group = (owner for _, owner in visibility.by_group)
        others = (*visibility.episodic, *visibility.session_owners, *by_group)
        selects = [f"SELECT unnest({bound.array((*self._owners, *others))})"]
        for column, names in (
            ("task_id", visibility.tasks),
            ("intent_id", (*visibility.intents, *visibility.coordinated)),
        ):
            if names:
                selects.append(
                    f"SELECT e.owner FROM unnest({bound.array(names)}) AS of_work (name)"
                    " CROSS JOIN LATERAL (SELECT owner FROM entries WHERE tenant = $1"
                    f" AND {column} = of_work.name AND tier = 'working' OFFSET 0) e"
                )
        return f"WITH visible_owners (owner) AS MATERIALIZED ({' UNION '.join(selects)}) "

    def _tags_of_row(self) -> Iterator[str]:
        """Returns the conditions on tags for few rows: a list of entries would not help."""
        alone = [tag for tag in self._wanted.tags if len(name_forms(tag)) == 1]
        if alone:
            yield f"e.tags::jsonb ?& {self._bound.array(alone)}"
        several = [name_forms(tag) for tag in self._wanted.tags if tag not in alone]
        for names in [*several, forms_of_names(self._wanted.tags_any)]:
            if names:
                yield f"e.tags::jsonb ?| {self._bound.array(names)}"
