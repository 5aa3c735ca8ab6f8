"""Where an entry comes from: who wrote it, with what standing, and what was read before."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memorywall.policy.decide import decide
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, Provenance, Source
from memorywall.records.errors import ValidationError
from memorywall.records.principal import Principal, PrincipalKind
from memorywall.storage.port import Transaction
from memorywall.wall.door import target_of

MOST_SOURCES = 64
_UNKNOWN = "`derived_from` names an entry or version that is not there for this agent to read"


def provenance_of(principal: Principal, shared: bool) -> Provenance:
    """The provenance of what `principal` writes; its sources are checked when it is written."""
    authority = None
    if shared:
        # Curators are the ones a namespace lets write: a user's word outranks an agent's.
        authority = "human_curated" if principal.kind is PrincipalKind.USER else "verified"
    return Provenance(
        principal=principal.actor,
        kind=principal.kind.value,
        authority=authority,
        fencing_token=principal.fencing_token,
    )


def check_sources(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources without repetition. Raises ValidationError when there are too many."""
    unique = tuple({(one.id, one.version): one for one in sources}.values())
    if len(unique) > MOST_SOURCES:
        raise ValidationError(
            f"`derived_from` has {len(unique)} sources, at most {MOST_SOURCES} are allowed"
        )
    return unique


async def with_sources(
    transaction: Transaction,
    principal: Principal,
    entry: Entry,
    sources: tuple[Source, ...],
    now: str,
) -> Entry:
    """The entry with its sources, each of which `principal` can read and had that version once.

    Raises ValidationError, in the same words for what is not there and for what is walled off.
    """
    if not sources:
        return entry
    for source in sources:
        read = await transaction.entries.get(principal.tenant, source.id, now)
        if read is None or source.version > read.version:
            raise ValidationError(_UNKNOWN)
        target = await target_of(transaction, principal, Verb.READ, read, now)
        if not decide(principal, Verb.READ, target).allowed:
            raise ValidationError(_UNKNOWN)
    provenance = msgspec.structs.replace(entry.provenance, derived_from=sources)
    return msgspec.structs.replace(entry, provenance=provenance)
