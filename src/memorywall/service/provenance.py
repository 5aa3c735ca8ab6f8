"""The provenance of entries: writer, authority and sources."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memorywall.records.decision import Verb
from memorywall.records.entry import (
    ORIGIN_RANK,
    Entry,
    Origin,
    Provenance,
    Source,
    lowest_origin,
    origin_of,
)
from memorywall.records.errors import ValidationError
from memorywall.records.principal import Principal, PrincipalKind
from memorywall.service.operation_context import OperationContext
from memorywall.service.subjects import merge_subjects
from memorywall.service.targets import load_target
from memorywall.service.validation import check_name

MOST_SOURCES = 64
LONGEST_SOURCE = 2_048
_UNKNOWN = "`derived_from` names an entry or version that this agent cannot read"


def provenance_of(
    principal: Principal, shared: bool, origin: Origin | None = None, source: str | None = None
) -> Provenance:
    """Returns the provenance of a write by `principal`; its sources are checked when it is written.

    origin: the origin that the caller names; default: the origin of its key
    source: the URI of the source

    Raises ValidationError for an origin with more trust than the caller's own.
    """
    own = origin_of(Provenance(principal=principal.id, kind=principal.kind.value))
    if origin is not None and ORIGIN_RANK[origin] > ORIGIN_RANK[own]:
        raise ValidationError(f"`origin` may be at most `{own}` for this key")
    if source is not None:
        check_name("source", source, longest=LONGEST_SOURCE)
    authority = None
    if shared:
        # Writers of a namespace are its curators; a user has more authority than an agent.
        authority = "human_curated" if principal.kind is PrincipalKind.USER else "verified"
    return Provenance(
        principal=principal.actor,
        kind=principal.kind.value,
        authority=authority,
        origin=origin or own,
        source=source,
        fencing_token=principal.fencing_token,
    )


def check_sources(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources without duplicates. Raises ValidationError for more than `MOST_SOURCES`."""
    unique = tuple({(one.id, one.version): one for one in sources}.values())
    if len(unique) > MOST_SOURCES:
        raise ValidationError(
            f"`derived_from` has {len(unique)} sources, at most {MOST_SOURCES} are allowed"
        )
    return unique


async def add_sources(
    context: OperationContext, entry: Entry, sources: tuple[Source, ...]
) -> Entry:
    """Returns the entry with its sources and the data that it inherits from them: their subjects,
    and the lowest of their origins. `principal` must be able to read each source, and each source
    must have had the named version.

    Raises ValidationError with the same message for a missing and for an unreadable source.
    """
    inside = context.principal.session
    provenance = msgspec.structs.replace(
        entry.provenance,
        session=entry.scope.session_id if inside is None else inside.id,
        task=entry.scope.task_id,
    )
    if not sources:
        return msgspec.structs.replace(entry, provenance=provenance)
    origins, subjects = [origin_of(provenance)], list[str]()
    for source in sources:
        read = await context.transaction.entries.get(source.id, context.now)
        if read is None or source.version > read.version:
            raise ValidationError(_UNKNOWN)
        if not context.allows(Verb.READ, await load_target(context, Verb.READ, read)):
            raise ValidationError(_UNKNOWN)
        origins.append(origin_of(read.provenance))
        subjects.extend(read.subjects)
    provenance = msgspec.structs.replace(
        provenance, derived_from=sources, origin=lowest_origin(origins)
    )
    return msgspec.structs.replace(
        entry,
        provenance=provenance,
        subjects=await merge_subjects(context, entry.subjects, subjects),
    )
