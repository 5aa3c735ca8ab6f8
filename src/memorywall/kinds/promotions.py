"""The kinds of promotion: what waits for a person, and what was decided (memory wall, 11.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.kinds.spec import Edge, KindSpec

CONTRADICTS = "contradicts"
"""The relation between a proposal and an entry that it contradicts."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
               forbid_unknown_fields=True):  # fmt: skip
    """A change of memory that waits for a person. It is inert: not searched, and in no context."""

    status: Annotated[
        Literal["draft", "applied", "rejected"],
        Meta(description="`draft` until a person decides."),
    ] = "draft"
    rule: Annotated[str, Meta(description="The rule that deferred it.")]
    reason: Annotated[str, Meta(description="What a person should know to decide.")]
    kind: Annotated[str | None, Meta(description="The kind of the proposed value.")] = None
    value: Annotated[dict[str, Any], Meta(description="The value, as it would be stored.")]
    key: Annotated[str, Meta(description="The key that the entry would have; empty for its id.")]
    replaces: Annotated[
        str | None, Meta(description="The entry whose value it would replace; null for a new one.")
    ] = None
    contradicts: Annotated[
        tuple[str, ...], Meta(description="The ids of the entries that it contradicts.")
    ] = ()


def _contradicted(proposal: Any) -> Iterator[Edge]:
    return (Edge(CONTRADICTS, one, is_id=True) for one in proposal.contradicts)


def _status(value: Any) -> str:
    return str(value.status)


PROPOSAL = KindSpec(
    name="proposal",
    schema=Proposal,
    description="A change of memory that waits for the decision of a person.",
    operations=("create_entry",),
    listed=False,
    evictable=False,
    is_searchable=False,
    lifetime="",
    statuses=("draft", "applied", "rejected"),
    status=_status,
    edges=_contradicted,
)

PROMOTION_KINDS: tuple[KindSpec, ...] = (PROPOSAL,)
