"""`client.facts`: facts that are valid in time, by patterns and by walks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeAlias

from memorywall.records.errors import ValidationError
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.entries import EntriesCore
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.fencing import fencing_token_of
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.retry import call
from memorywall.wire.facts import (
    CheckOntologyResponse,
    Direction,
    QueryFactsResponse,
    WalkFactsResponse,
)

DEFAULT_NAMESPACE = "facts"
Pattern: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""A subject, a relation and an object, or the fields of a pattern by name."""
_PATTERN, _FILTER = ("subject", "relation", "object"), ("variable", "operator", "value")
"""The names of the three parts."""
Moment: TypeAlias = datetime | date | str


class FactsCore:
    """The operations on facts, as request generators."""

    def __init__(self, state: ClientState) -> None:
        self._state = state
        self._entries = EntriesCore(state)

    def add(
        self,
        subject: str,
        relation: str,
        object: str | float,
        fields: Mapping[str, Any] | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        subjects: Sequence[str] = (),
    ) -> RequestGenerator[MemoryEntry]:
        """Stores a fact, and returns its entry. An entry of kind `proposal` waits for a person: the
        fact contradicts another one.

        subject, object: the name or the id of an entity; an object may also be a number, a truth
            value, or a text such as a date
        fields: other fields of the value, such as `valid_from`, `valid_until` and `confidence`
        subjects: the people that it is about, so that `forget` finds it; a name is no person

        Raises RuleError, which names the rule that refuses the fact; ValidationError.
        """
        value = {"subject": subject, "relation": relation, "object": object, **(fields or {})}
        entry: dict[str, Any] = {"value": value, "kind": "fact"}
        if subjects:
            entry["subjects"] = list(subjects)
        fence = fencing_token_of(self._state)
        return self._entries.create(namespace, None, "semantic", entry, fence)

    def query(
        self,
        patterns: Sequence[Pattern],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        filters: Sequence[Sequence[Any]] = (),
        order_by: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        valid_at: Moment | None = None,
        as_of: datetime | str | None = None,
    ) -> RequestGenerator[QueryFactsResponse]:
        """Returns what makes all patterns match: the values of their variables, and the facts.

        patterns: each a subject, a relation and an object, of which those that begin with `?` are
            variables, or a mapping with these fields and `negated`; at most 8
        filters: each a variable, a comparison such as `>=`, and a literal or another variable
        order_by: the variable that orders the rows, with or without `?`
        limit: 1 to 1,000; default: 100
        valid_at: only what held then: an instant, a date, or "any"; default: that of `as_of`, or
            now
        as_of: what was known then; default: now

        Raises ValidationError, ScanLimitError for patterns that read more than 10,000 facts.
        """
        body = {
            "namespace": namespace,
            "patterns": [_named("patterns", _PATTERN, one) for one in patterns],
            "filters": [_named("filters", _FILTER, one) for one in filters],
            "order_by": None if order_by is None else f"?{order_by.removeprefix('?')}",
            "descending": descending,
            "limit": limit,
            **_clocks(valid_at, as_of),
        }
        return call("query_facts", QueryFactsResponse, body=without_absent(body))

    def walk(
        self,
        start: Sequence[str],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        hops: int = 1,
        relations: Sequence[str] = (),
        direction: Direction = "both",
        limit: int | None = None,
        valid_at: Moment | None = None,
        as_of: datetime | str | None = None,
    ) -> RequestGenerator[WalkFactsResponse]:
        """Returns the nodes that facts connect with some nodes, nearest first, with the facts of
        each path.

        start: names, or ids of entities
        hops: the most facts of a path, 1 to 4
        relations: only these and their sub-relations; default: any
        direction: "out" from subjects to objects, "in" the other way
        limit, valid_at, as_of: as in `query`

        Raises ValidationError, ScanLimitError.
        """
        body = {
            "namespace": namespace,
            "start": list(start),
            "hops": hops,
            "relations": list(relations),
            "direction": direction,
            "limit": limit,
            **_clocks(valid_at, as_of),
        }
        return call("walk_facts", WalkFactsResponse, body=without_absent(body))

    def check(
        self, ontology: Mapping[str, Any], *, namespace: str = DEFAULT_NAMESPACE
    ) -> RequestGenerator[CheckOntologyResponse]:
        """Returns how many stored entities and facts an ontology would leave, change, drop or
        refuse, without storing anything: the dry run of its migration.

        ontology: the value of an entry of kind `ontology`

        Raises RuleError, ValidationError.
        """
        body = {"namespace": namespace, "ontology": dict(ontology)}
        return call("check_ontology", CheckOntologyResponse, body=body)


def _named(field: str, names: Sequence[str], given: Pattern) -> dict[str, Any]:
    """Returns the parts of a pattern or a filter by name. Raises ValidationError for another number
    of parts, and for a text."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str) or len(given) != len(names):
        raise ValidationError(f"each of `{field}` must have three parts: {', '.join(names)}")
    return dict(zip(names, given, strict=True))


def _clocks(valid_at: Moment | None, as_of: Moment | None) -> dict[str, str | None]:
    return {
        "valid_at": None if valid_at is None else instant(valid_at),
        "as_of": None if as_of is None else instant(as_of),
    }


class _FactsMethods:
    add = method(FactsCore.add)
    query = method(FactsCore.query)
    walk = method(FactsCore.walk)
    check = method(FactsCore.check)


class FactsClient(_FactsMethods, Facade[FactsCore]):
    """Stores facts, and finds them by patterns and by walks."""


class AsyncFactsClient(_FactsMethods, AsyncFacade[FactsCore]):
    """Stores facts, and finds them by patterns and by walks."""
