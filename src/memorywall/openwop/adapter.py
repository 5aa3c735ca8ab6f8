"""The memory adapter: a governed view of the entries of a namespace (OpenWOP agent-memory).

Inside a run the view is the run's snapshot and its own writes. The rules of namespaces decide who
reads and writes; what the caller may not read looks like nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
from msgspec import UNSET

from memorywall.kinds.openwop import AGENT_MEMORY, KEPT_MEMORY, AgentMemory, KeptMemory, Snapshot
from memorywall.openwop.references import LONGEST_ID, MALFORMED, namespace_of
from memorywall.records.clock import parse_instant
from memorywall.records.decision import Verb
from memorywall.records.entry import EMPTY_SCOPE, Entry, Scope, Source, is_expired
from memorywall.records.errors import MemoryNotFoundError, ValidationError, ValueTooLargeError
from memorywall.records.event import EventType
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.service.access.subjects import check_count, check_subject
from memorywall.service.access.targets import load_namespace_target, load_target
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.governed_entries import make_governed_entry
from memorywall.service.entries.kept import KEEPER, KEPT_IN, retire_entry
from memorywall.service.entries.namespace_entry import enter_namespace
from memorywall.service.entries.provenance import provenance_of
from memorywall.service.entries.writes import create_new_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_tags
from memorywall.wire.openwop import LARGEST_ENTRY, LARGEST_LIST, MemoryEntryResponse

_WHENEVER = ""
"""An instant before all others, at which no entry has expired."""
_SUBJECT = "subject:"
"""The beginning of a tag that names a person whom an entry is about."""


class MemoryReader(Protocol):
    """The run whose view of memory is read."""

    @property
    def id(self) -> str:
        """The id of its session."""
        ...

    @property
    def snapshot(self) -> Snapshot:
        """What it reads besides its own writes."""
        ...


class MemoryWriter(MemoryReader, Protocol):
    """The run that an adapter writes for."""

    async def wrote(self, namespace: str, entry: Entry, node_id: str | None) -> None:
        """Attributes a write. Raises SecretsUnavailableError, so that nothing is stored."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryView:
    """What is read of the memory of a tenant, for one transaction.

    run: the run whose view it is; None for the present state
    """

    context: OperationContext
    run: MemoryReader | None = None

    async def list(
        self, memory_ref: str, limit: int = 0, tag: str | None = None
    ) -> Sequence[MemoryEntryResponse]:
        """Returns entries, the newest first; none for a malformed reference.

        limit: 0 for as many as the server shows
        tag: only entries with this tag
        """
        self.context.decide_by_row()
        namespace = namespace_of(memory_ref)
        if namespace is None:
            return []
        most = min(limit or LARGEST_LIST, LARGEST_LIST)
        wanted = filter_of(self.context.tenant, namespace, most, tag)
        if self.run is None:
            return await self._search(wanted)
        own = await self._search(msgspec.structs.replace(wanted, session_id=self.run.id))
        snapshot = self.run.snapshot
        earlier = await self._search(msgspec.structs.replace(wanted, before=snapshot.position))
        oldest = earlier[-1].id if len(earlier) == most else ""
        live = {one.id for one in earlier}
        gone = [one for one in snapshot.ids.get(namespace, ()) if one > oldest and one not in live]
        kept = await self._kept(gone, namespace, tag)
        older = sorted((*earlier, *kept), key=lambda one: one.id, reverse=True)
        return [*own, *older][:most]

    async def get(self, memory_ref: str, memory_id: str) -> MemoryEntryResponse | None:
        """Returns an entry; None if it is missing, hidden, of another memory or malformed."""
        entry = await self._find(memory_ref, memory_id)
        run = self.run
        if entry is not None and run is not None and entry.scope.session_id != run.id:
            entry = entry if entry.id < run.snapshot.position else None
        if entry is not None:
            return view(entry)
        namespace = namespace_of(memory_ref)
        if namespace is None or run is None:
            return None
        named = memory_id in run.snapshot.ids.get(namespace, ())
        kept = await self._kept([memory_id] if named else [], namespace, None)
        return kept[0] if kept else None

    async def _search(self, wanted: EntryFilter) -> Sequence[MemoryEntryResponse]:
        visible = await load_visibility(self.context, Verb.READ, wanted)
        found, _ = await self.context.transaction.entries.search(wanted, visible, self.context.now)
        return await self.context.build(view, found)

    async def _find(self, memory_ref: str, memory_id: str) -> Entry | None:
        """Returns a live entry of a memory that the caller may read."""
        context, namespace = self.context, namespace_of(memory_ref)
        context.decide_by_row()
        if namespace is None or not 0 < len(memory_id) <= LONGEST_ID or "\0" in memory_id:
            return None
        entry = await context.transaction.entries.get(memory_id, context.now)
        if entry is None or entry.namespace != namespace or entry.kind != AGENT_MEMORY.name:
            return None
        target = await load_target(context, Verb.READ, entry)
        return entry if entry.state == "live" and context.allows(Verb.READ, target) else None

    async def _kept(
        self, ids: Collection[str], namespace: str, tag: str | None
    ) -> Sequence[MemoryEntryResponse]:
        """Returns what is left of removed entries of a snapshot that have not expired."""
        if not ids:
            return []
        target = await load_namespace_target(self.context, Tier.SEMANTIC, namespace)
        if not self.context.allows(Verb.READ, target):
            return []
        copies = (await read_recorded(self.context, ids, only_kept=True)).values()
        return [
            one
            for one in copies
            if (tag is None or tag in one.tags)
            and (one.expires_at is UNSET or one.expires_at > self.context.now)
        ]


@dataclass(frozen=True, slots=True)
class MemoryAdapter(MemoryView):
    """The memory of a tenant, for one transaction that may write.

    run: the run that reads and writes; None for the present state
    """

    run: MemoryWriter | None = None

    async def put(
        self,
        memory_ref: str,
        content: str,
        tags: Collection[str] = (),
        expires_at: str | None = None,
        *,
        node_id: str | None = None,
        sources: Sequence[Entry] = (),
        may_be_past: bool = False,
    ) -> Entry:
        """Stores an entry with a new id and returns it as it is stored, secrets redacted.

        expires_at: an RFC 3339 instant with an offset
        node_id: the node of the run that writes
        sources: the entries that it is derived from, at most 64
        may_be_past: whether `expires_at` may be past, for the tests of expiry; default: false

        Raises ValidationError, MemoryAccessError, SecretsUnavailableError.
        """
        context, namespace = self.context, namespace_of(memory_ref)
        if namespace is None:
            raise ValidationError(MALFORMED)
        size = len(content.encode())
        if size > LARGEST_ENTRY:
            raise ValidationError(
                f"`content` has {size} bytes and may have {LARGEST_ENTRY}; divide it"
            )
        names = check_tags([one for one in tags if one])
        expiry = None if expires_at is None else _instant(expires_at)
        if expiry is not None and expiry <= context.now and not may_be_past:
            raise ValidationError("`expiresAt` is past; leave it out, or name a later instant")
        await enter_namespace(context, Tier.SEMANTIC, namespace, namespace)
        entry_id = context.service.ids.next("mem")
        try:
            entry = make_governed_entry(
                context,
                AGENT_MEMORY,
                AgentMemory(content=content),
                owner="",
                namespace=namespace,
                key=entry_id,
                scope=EMPTY_SCOPE if self.run is None else Scope(session_id=self.run.id),
                subjects=_subjects(names, sources),
                entry_id=entry_id,
                expires_at=expiry,
                field="content",
            )
        except ValueTooLargeError as error:
            raise ValidationError(error.detail) from None
        provenance = msgspec.structs.replace(
            provenance_of(context.principal, shared=True),
            session=None if self.run is None else self.run.id,
            derived_from=tuple(Source(id=one.id, version=one.version) for one in sources),
        )
        own = context.principal.id
        entry = msgspec.structs.replace(
            entry, tags=names, provenance=provenance, agent_id=own, curated_by=own
        )
        stored = await create_new_entry(context, entry)
        if self.run is not None:
            await self.run.wrote(namespace, stored, node_id)
        return stored

    async def delete(self, memory_ref: str, memory_id: str) -> None:
        """Deletes an entry; runs that could read it keep it in their snapshots. Raises
        MemoryNotFoundError, MemoryAccessError."""
        entry = await self._find(memory_ref, memory_id)
        if entry is None:
            raise MemoryNotFoundError(
                "the memory has no such entry; list it for the ids of those that it has"
            )
        self.context.authorize(Verb.DELETE, await load_target(self.context, Verb.DELETE, entry))
        await retire_entry(self.context, EventType.DELETED, entry)


def filter_of(tenant: str, namespace: str, most: int, tag: str | None = None) -> EntryFilter:
    """Returns the filter of the entries of a memory."""
    return EntryFilter(
        tenant=tenant,
        tiers=(Tier.SEMANTIC,),
        namespace=namespace,
        kind=AGENT_MEMORY.name,
        tags=() if tag is None else (tag,),
        limit=most,
        counted=False,
    )


async def read_recorded(
    context: OperationContext, ids: Collection[str], *, only_kept: bool = False
) -> dict[str, MemoryEntryResponse]:
    """Returns entries that a run has read or written, by id, whether or not they have expired or
    OpenWOP has deleted them; without those that are erased. The caller has decided about the run.

    only_kept: whether only copies of removed entries are read; default: false
    """
    entries = context.transaction.entries
    live = [] if only_kept else await entries.get_many(ids, _WHENEVER)
    views = await context.build(view, (one for one in live if one.kind == AGENT_MEMORY.name))
    found = {one.id: one for one in views}
    for memory_id in ids:
        if memory_id not in found:
            copy = await entries.find(Tier.EPISODIC, KEEPER, KEPT_IN, memory_id)
            if copy is not None and not is_expired(copy, context.now):
                found[memory_id] = view(copy)
    return found


def view(entry: Entry) -> MemoryEntryResponse:
    """Returns an entry of a memory, or what is left of one, as OpenWOP shows it. Neither is ever
    sealed."""
    if entry.kind == KEPT_MEMORY.name:
        kept = msgspec.json.decode(entry.value, type=KeptMemory)
        memory_id, content = kept.memory, kept.content
        created_at, expires_at = kept.created_at, kept.expires_at
    else:
        content = msgspec.json.decode(entry.value, type=AgentMemory).content
        memory_id, created_at, expires_at = entry.id, entry.created_at, entry.expires_at
    return MemoryEntryResponse(
        id=memory_id,
        content=content,
        tags=list(entry.tags),
        created_at=created_at,
        expires_at=UNSET if expires_at is None else expires_at,
    )


def _instant(text: str) -> str:
    try:
        return parse_instant(text)
    except ValueError:
        raise ValidationError(
            "`expiresAt` must be an RFC 3339 instant with an offset, such as 2026-11-01T00:00:00Z"
        ) from None


def _subjects(tags: Collection[str], sources: Sequence[Entry]) -> tuple[str, ...]:
    """Returns the people whom tags name, and those whom the sources are about."""
    named = [one.removeprefix(_SUBJECT) for one in tags if one.startswith(_SUBJECT)]
    named += [subject for one in sources for subject in one.subjects]
    return check_count(tuple(dict.fromkeys(check_subject("tags", one) for one in named)))
