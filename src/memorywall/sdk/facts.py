"""`client.facts`: facts that are valid in time, by patterns and by walks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, TypeAlias

from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.entries import EntriesCore
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.fencing import fencing_token_of
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.retry import call
from memorywall.wire.facts import CheckOntologyResponse, QueryFactsResponse, WalkFactsResponse

DEFAULT_NAMESPACE = "facts"
Pattern: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""A subject, a relation and an object, or the fields of a pattern by name."""
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
        *,
        namespace: str = DEFAULT_NAMESPACE,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        confidence: float | None = None,
        evidence_count: int | None = None,
        attributes: Mapping[str, str | float] | None = None,
    ) -> RequestGenerator[MemoryEntry]:
        """Stores a fact, and returns its entry. An entry of kind `proposal` waits for a person: the
        fact contradicts another one.

        subject, object: the name or the id of an entity; an object may also be a number, a truth
            value, or a text such as a date
        valid_from, valid_until: when it holds, the end not included; default: without a limit. The
            newer value of a functional relation holds from now on
        confidence: the trust in it, from 0 to 1; default: 1
        evidence_count: how many observations support it; default: 0
        attributes: further texts, numbers and truth values by name

        Raises RuleError, which names the rule that refuses the fact; ValidationError.
        """
        value = without_absent(
            {
                "subject": subject,
                "relation": relation,
                "object": object,
                "valid_from": None if valid_from is None else instant(valid_from),
                "valid_until": None if valid_until is None else instant(valid_until),
                "confidence": confidence,
                "evidence_count": evidence_count,
                "attributes": None if attributes is None else dict(attributes),
            }
        )
        return self._add(namespace, "fact", value)

    def add_entity(
        self,
        name: str,
        entity_class: str | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        aliases: Sequence[str] = (),
        attributes: Mapping[str, str | float] | None = None,
        alias_of: str | None = None,
    ) -> RequestGenerator[MemoryEntry]:
        """Stores an entity, which facts of the namespace name, and returns its entry.

        entity_class: a class of the ontology; default: none
        aliases: its other names
        attributes: texts, numbers and truth values by name
        alias_of: the id of the entity that `name` is another name of. Deleting the entry takes the
            alias back

        Raises RuleError, ValidationError.
        """
        value = {
            "name": name,
            "class": entity_class,
            "aliases": list(aliases) or None,
            "attributes": None if attributes is None else dict(attributes),
            "alias_of": alias_of,
        }
        return self._add(namespace, "entity", without_absent(value))

    def query(
        self,
        *patterns: Pattern,
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
        order_by: the variable that orders the rows
        limit: 1 to 1,000; default: 100
        valid_at: only what held then: an instant, a date, or "any"; default: that of `as_of`, or
            now
        as_of: what was known then; default: now

        Raises ValidationError, ScanLimitError for patterns that read more than 10,000 facts.
        """
        names = ("subject", "relation", "object")
        body = {
            "namespace": namespace,
            "patterns": [
                dict(one) if isinstance(one, Mapping) else dict(zip(names, one, strict=True))
                for one in patterns
            ],
            "filters": [
                dict(zip(("variable", "operator", "value"), one, strict=True)) for one in filters
            ],
            "order_by": order_by,
            "descending": descending,
            "limit": limit,
            **_clocks(valid_at, as_of),
        }
        return call("query_facts", QueryFactsResponse, body=without_absent(body))

    def walk(
        self,
        *start: str,
        namespace: str = DEFAULT_NAMESPACE,
        hops: int = 1,
        relations: Sequence[str] = (),
        direction: Literal["out", "in", "both"] = "both",
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

    def _add(
        self, namespace: str, kind: str, value: Mapping[str, Any]
    ) -> RequestGenerator[MemoryEntry]:
        fields = {"value": dict(value), "kind": kind}
        fence = fencing_token_of(self._state)
        return self._entries.create(namespace, None, "semantic", fields, fence)


def _clocks(valid_at: Moment | None, as_of: Moment | None) -> dict[str, str | None]:
    return {
        "valid_at": None if valid_at is None else instant(valid_at),
        "as_of": None if as_of is None else instant(as_of),
    }


class _FactsMethods:
    add = method(FactsCore.add)
    add_entity = method(FactsCore.add_entity)
    query = method(FactsCore.query)
    walk = method(FactsCore.walk)
    check = method(FactsCore.check)


class FactsClient(_FactsMethods, Facade[FactsCore]):
    """Stores facts, and finds them by patterns and by walks."""


class AsyncFactsClient(_FactsMethods, AsyncFacade[FactsCore]):
    """Stores facts, and finds them by patterns and by walks."""
