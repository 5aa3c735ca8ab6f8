"""The provenance of entries: writer, authority and sources."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memorywall.kinds.contexts import CONTEXT
from memorywall.kinds.spec import DERIVED_FROM
from memorywall.records.decision import Target, Verb
from memorywall.records.draft import EntryPatch
from memorywall.records.entry import (
    ORIGIN_RANK,
    Entry,
    Origin,
    Provenance,
    Scope,
    Source,
    ValueCorrection,
    lowest_origin,
    origin_of,
    origin_of_writer,
)
from memorywall.records.errors import (
    MemoryAccessError,
    MemoryNotFoundError,
    ResourceNotFoundError,
    ValidationError,
)
from memorywall.records.principal import Permission, Principal, PrincipalKind
from memorywall.records.tier import Isolation
from memorywall.service.access.subjects import include_subjects, merge_subjects
from memorywall.service.access.targets import load_target
from memorywall.service.entries.writes import make_next_version, replace_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_name

MOST_SOURCES = 64
LONGEST_SOURCE = 2_048
MOST_DERIVED = 1_000
"""The most entries that get a subject from the entry that they were derived from."""
_UNKNOWN = "`derived_from` names an entry or version that this agent cannot read"


def provenance_of(
    principal: Principal,
    shared: bool,
    origin: Origin | None = None,
    source: str | None = None,
    context_id: str | None = None,
) -> Provenance:
    """Returns the provenance of a write by `principal`; its sources are checked when it is written.

    origin: the origin that the caller names; default: the origin of its key
    source: the URI of the source
    context_id: the compiled context that the writer answers from

    Raises ValidationError for an origin with more trust than the caller's own.
    """
    own = origin_of_writer(principal.kind)
    if principal.kind is PrincipalKind.SERVICE and Permission.ADMIN in principal.permissions:
        # What an administrator writes is as trustworthy as what the agents of the server write.
        own = "agent"
    if origin is not None and ORIGIN_RANK[origin] > ORIGIN_RANK[own]:
        raise ValidationError(f"`origin` may be at most `{own}` for this key")
    if source is not None:
        check_name("source", source, longest=LONGEST_SOURCE)
    authority = None
    if shared:
        # Writers of a namespace are its curators; a user has more authority than an agent.
        authority = "human_curated" if principal.kind is PrincipalKind.USER else "agent_learned"
    return Provenance(
        principal=principal.actor,
        kind=principal.kind,
        authority=authority,
        origin=origin or own,
        source=source,
        context=context_id,
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


def update_provenance(
    context: OperationContext,
    old: Entry,
    new: Entry,
    given: EntryPatch,
    correction: ValueCorrection | None = None,
) -> Entry:
    """Returns an updated entry with its provenance.

    The principal and the fencing token are those of the update. The other fields describe the
    value, so an update that does not change the value keeps them. An update that changes the value
    keeps the source and the sources that it does not name. Only a person raises the origin: by
    changing the value, or by naming an origin.

    old, new: the opened entry before and after the update
    given: the update, of which the origin, source and context are read
    correction: of an update that corrects the value; default: none

    Raises ValidationError like `provenance_of`.
    """
    kept, origin = old.provenance, given.origin or None
    writer = provenance_of(context.principal, not old.owner, origin, given.source or None)
    provenance = msgspec.structs.replace(
        kept,
        principal=writer.principal,
        kind=writer.kind,
        fencing_token=writer.fencing_token,
        origin=origin_of(kept),
        source=writer.source or kept.source,
        context=given.context_id or kept.context,
    )
    if new.value != old.value or origin is not None or correction is not None:
        own, inside = origin_of(writer), context.principal.session
        if context.principal.kind is not PrincipalKind.USER:
            own = lowest_origin((own, origin_of(kept)))
        provenance = msgspec.structs.replace(
            provenance,
            origin=own,
            authority=_authority(writer.authority, kept.derived_from),
            verified_by=None,
            promoted_by=None,
            promoted_at=None,
            learned_at=None,
            score=None,
            correction=correction,
            context=given.context_id or None,
            session=new.scope.session_id if inside is None else inside.id,
            task=new.scope.task_id,
        )
    return msgspec.structs.replace(new, provenance=provenance)


def _authority(
    authority: str | None, sources: tuple[Source, ...], *, is_promoted: bool = False
) -> str | None:
    """Returns the authority of a value with these sources: what an agent derives is inferred, and
    what was promoted is learned (memory wall, 11.5.3)."""
    is_inferred = bool(sources) and authority == "agent_learned" and not is_promoted
    return "inferred" if is_inferred else authority


def add_place(principal: Principal, scope: Scope, provenance: Provenance) -> Provenance:
    """Returns the provenance of a write with its session and its task."""
    inside = principal.session
    session = scope.session_id if inside is None else inside.id
    return msgspec.structs.replace(provenance, session=session, task=scope.task_id)


async def check_context(context: OperationContext, context_id: str) -> None:
    """Raises ValidationError for a `context_id` that is no context of the caller."""
    try:
        await load_context_entry(context, context_id, Verb.READ)
    except (ResourceNotFoundError, MemoryNotFoundError, MemoryAccessError):
        raise ValidationError(
            "`context_id` names no context of this agent; it may have expired"
        ) from None


async def load_context_entry(context: OperationContext, context_id: str, verb: Verb) -> Entry:
    """Returns the entry of a compiled context of the caller.

    Raises ResourceNotFoundError, also for the context of another agent, MemoryAccessError.
    """
    entry = await context.transaction.entries.get(context_id, context.now)
    if entry is None or entry.kind != CONTEXT.name or entry.created_by != context.principal.id:
        context.decide_by_row()
        missing = ResourceNotFoundError("there is no such context; it may have expired")
        missing.hides_refusal = entry is not None and entry.kind == CONTEXT.name
        raise missing
    target = Target(
        tenant=entry.tenant,
        isolation=Isolation.AGENT,
        owner=context.principal.id,
        subjects=entry.subjects,
        place=entry.namespace,
    )
    context.authorize(verb, target)
    return entry


async def add_sources(
    context: OperationContext, entry: Entry, sources: tuple[Source, ...]
) -> Entry:
    """Returns the entry with its sources and the data that it inherits from them: their subjects,
    and the lowest of their origins. `principal` must be able to read each source, and each source
    must have had the named version.

    Raises ValidationError with the same message for a missing and for an unreadable source.
    """
    origins, subjects = [origin_of(entry.provenance)], list[str]()
    for source in sources:
        for read in await _read_versions(context, source):
            origins.append(origin_of(read.provenance))
            subjects.extend(read.subjects)
    provenance = msgspec.structs.replace(
        entry.provenance,
        derived_from=sources,
        origin=lowest_origin(origins),
        authority=_authority(
            entry.provenance.authority,
            sources,
            is_promoted=entry.provenance.promoted_at is not None,
        ),
    )
    return msgspec.structs.replace(
        entry,
        provenance=provenance,
        subjects=await merge_subjects(context, entry.subjects, subjects),
    )


async def replace_sources(
    context: OperationContext, old: Entry, new: Entry, sources: tuple[Source, ...] | None
) -> Entry:
    """Returns the updated entry with its new sources, like `add_sources`; None keeps the present
    ones. A derived entry stays derived and keeps its subjects, which may be those of a source that
    is gone, so that forgetting a subject finds it.

    old: the opened entry before the update

    Raises ValidationError like `add_sources`, and for an update without the subjects or without any
    source of a derived entry.
    """
    is_derived = bool(old.provenance.derived_from)
    if sources is not None:
        if is_derived and not sources:
            raise ValidationError(
                "`derived_from` of a derived entry must name a source; create another entry for a"
                " value that is derived from none"
            )
        new = await add_sources(context, new, sources)
    if is_derived and not await include_subjects(context, new.subjects, old.subjects):
        raise ValidationError(
            "`subjects` of a derived entry must contain all that it has; leave the field out to"
            " keep them"
        )
    return new


async def pass_on_subjects(context: OperationContext, old: Entry, new: Entry) -> None:
    """Adds the new subjects of an entry to the entries derived from it, directly or not.

    old, new: the opened entry before the update, and after it, as it has been stored

    Raises ValidationError for more than `MOST_DERIVED` derived entries, and for one that would have
    too many subjects.
    """
    if set(new.subjects) <= set(old.subjects):
        return
    transaction = context.transaction
    stored = await transaction.entries.get(new.id, context.now)
    waiting, seen = [new.id], {new.id}
    while stored is not None and waiting:
        found = await transaction.edges.sources(DERIVED_FROM, waiting, MOST_DERIVED + 2)
        waiting = [one for one in found if one not in seen]
        seen.update(waiting)
        if len(seen) > MOST_DERIVED + 1:
            raise ValidationError(
                f"`subjects` cannot be added to an entry with more than {MOST_DERIVED} derived ones"
            )
        for derived in await transaction.entries.get_many(waiting, context.now):
            opened = await context.service.cipher.open(transaction, derived)
            subjects = await merge_subjects(context, opened.subjects, stored.subjects)
            if len(subjects) > len(opened.subjects):
                named = make_next_version(context, opened, subjects=subjects)
                await replace_entry(context, derived, named)


async def _read_versions(context: OperationContext, source: Source) -> list[Entry]:
    """Returns the present version of a source, and the named one if it is another and is kept."""
    read = await context.transaction.entries.get(source.id, context.now)
    if read is None or source.version > read.version:
        raise ValidationError(_UNKNOWN)
    versions = [read]
    if source.version < read.version:
        earlier = await context.transaction.history.get(source.id, source.version)
        versions += [] if earlier is None else [earlier]
    for one in versions:
        if not context.allows(Verb.READ, await load_target(context, Verb.READ, one)):
            raise ValidationError(_UNKNOWN)
    return versions
