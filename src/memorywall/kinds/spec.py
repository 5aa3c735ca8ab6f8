"""The specification of a kind: a schema for values, and pure functions of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from memorywall.kinds.indexed import IndexedField
from memorywall.records.condition import Path
from memorywall.records.tier import Tier

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

ABOUT = "about"
"""The relation between an entry and a person that the entry is about."""
DERIVED_FROM = "derived_from"
"""The relation between an entry and a source that it was derived from."""
SUPERSEDED_BY = "superseded_by"
"""The relation between an entry and the one that supersedes it."""
WITHDRAWN_BY = "withdrawn_by"
"""The relation between a withdrawn entry and one whose correction or retraction withdrew it."""
RESERVED_RELATIONS = frozenset({ABOUT, DERIVED_FROM, SUPERSEDED_BY, WITHDRAWN_BY})
"""The relations that the server derives itself; no kind may use them."""


class Lookup(NamedTuple):
    """Texts by which the rules of a kind find its entries within their namespace.

    name: of this look-up, in snake case
    parts: the texts, from the first one that is asked for, without line breaks. A look-up gives the
        first ones, and finds entries in the order of the others. Beside a sealed entry there is
        only a digest of the first one.
    """

    name: str
    parts: tuple[str, ...]


class Edge(NamedTuple):
    """An edge from an entry to a target.

    relation: the name of the relation, in snake case
    target: the id of an entry, or a literal such as the name of a person
    is_id: whether the target is an id, which stays in clear text for a sealed entry
    """

    relation: str
    target: str
    is_id: bool = False


def _no_text(_: Any) -> str | None:
    return None


def _nothing(_: Any) -> Iterable[Any]:
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class KindSpec:
    """The specification of a kind.

    name: snake case, at most 64 characters; used in the entry and on the wire
    version: the version of `schema`, from 1; stored in the entry
    schema: the struct of a value; it must forbid unknown fields
    description: one sentence for the documentation of the schema
    tier: the tier an entry of this kind must lie in; None for any tier
    operations: names of the operations that create and change a governed kind; empty for a kind
        that plain requests create and change
    removed_by: names of the operations that remove entries of a kind whose plain removal would
        leave others behind; empty for a kind that plain requests delete
    listed: whether lists and searches show it unless they name a kind; an unlisted kind counts
        toward no capacity
    status, text, edges, due: pure functions of the value, given as the struct `schema`
    evictable: whether a full tier may evict an entry of this kind
    lifetime: the ISO 8601 duration after which an entry without an expiry of its own expires; ""
        for an entry that lasts as long as what it belongs to; None, the default, for the lifetime
        of its tier
    texts: of a governed kind, the fields of the value that hold text of callers, to which the
        policy of personal data applies. They hold no ids, digests or bytes. Values of other kinds
        are text of callers as a whole.
    statuses: every word that `status` returns; no others are stored, so that no text of a sealed
        value is stored in clear text
    status: the word that lists filter by; None for a value without a life
    text: what recall reads and embeds instead of the whole value; None leaves that to recall
    line: what people and models are shown of it, on one line; None, the default, for its text
    is_searchable: whether recall reads an entry of this kind at all
    edges: what the value points at
    lookups: by which texts the rules of the kind find its entries
    due: the next instant (RFC 3339, as it is stored) at which something must happen; None for never
    indexed: the paths of the value by which queries that name the kind find its entries
    is_kept_for_runs: whether a copy stays for the snapshots of OpenWOP runs when an entry expires
        or OpenWOP deletes it
    upgrades: for each older version a function that turns its value into one of the next version
    """

    name: str
    schema: type[msgspec.Struct]
    description: str
    version: int = 1
    tier: Tier | None = None
    operations: tuple[str, ...] = ()
    removed_by: tuple[str, ...] = ()
    listed: bool = True
    evictable: bool = True
    lifetime: str | None = None
    texts: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    status: Callable[[Any], str | None] = _no_text
    text: Callable[[Any], str | None] = _no_text
    line: Callable[[Any], str | None] = _no_text
    is_searchable: bool = True
    edges: Callable[[Any], Iterable[Edge]] = _nothing
    lookups: Callable[[Any], Iterable[Lookup]] = _nothing
    due: Callable[[Any], str | None] = _no_text
    indexed: tuple[IndexedField, ...] = ()
    is_kept_for_runs: bool = False
    upgrades: Mapping[int, Upgrade] = field(default_factory=dict)

    def show(self, value: Any) -> str | None:
        """Returns what people and models are shown of a value, the struct `schema`; None if the
        kind does not say."""
        return self.line(value) or self.text(value)

    @property
    def is_governed(self) -> bool:
        """Whether only operations of its own create and change an entry of this kind."""
        return bool(self.operations)

    @property
    def instants(self) -> tuple[Path, ...]:
        """The paths at which conditions compare instants."""
        return tuple(one.value_path for one in self.indexed if one.is_instant)

    def indexed_at(self, version: int) -> tuple[IndexedField, ...]:
        """Returns the paths of which entries of a version of the kind have rows."""
        return tuple(one for one in self.indexed if one.since <= version)

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or len(self.name) > 64 or self.name != self.name.lower():
            raise ValueError(f"the kind {self.name!r} must have a name in snake case")
        if not self.schema.__struct_config__.forbid_unknown_fields:
            raise ValueError(f"the schema of the kind {self.name} must forbid unknown fields")
        if set(self.upgrades) != set(range(1, self.version)):
            raise ValueError(
                f"the kind {self.name} must upgrade each version before {self.version}"
            )
        for one in self.indexed:
            if not 1 <= one.since <= self.version:
                raise ValueError(f"`since` of {one.path} must be a version of the kind {self.name}")
            if one.members[0] not in self.schema.__struct_encode_fields__:
                raise ValueError(f"{one.path} must begin with a field of the kind {self.name}")
