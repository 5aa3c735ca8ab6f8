"""The entries of a session: their names, and how they are made."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from memorywall.kinds.contexts import CONTEXT
from memorywall.kinds.openwop import RUN_EVENT
from memorywall.kinds.sessions import CHECKPOINT, SAVED_STATE, SESSION, SUMMARY, TURN, Session
from memorywall.kinds.spec import KindSpec
from memorywall.kinds.working_memory import SCRATCH, WORKING_STATE
from memorywall.records.entry import Entry, Origin, Scope, Source
from memorywall.records.session import SessionCounters
from memorywall.service.entries.governed_entries import make_governed_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.storage.sql.record_table import SESSION_COUNTERS

NAMESPACES = {
    SESSION.name: "sessions",
    TURN.name: "turns",
    SUMMARY.name: "summaries",
    CHECKPOINT.name: "checkpoints",
    SAVED_STATE.name: "saved_states",
    RUN_EVENT.name: "run_events",
}
"""The namespace of the entries of a kind."""
PARTITION = (
    TURN.name, SUMMARY.name, CHECKPOINT.name, SAVED_STATE.name, CONTEXT.name, SCRATCH.name,
    WORKING_STATE.name, RUN_EVENT.name,
)  # fmt: skip
"""The kinds of the entries that are deleted with their session."""


@dataclass(frozen=True, slots=True)
class LoadedSession:
    """A session as it was read.

    entry: the entry, as the store has it
    """

    entry: Entry
    value: Session

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.entry.id

    @property
    def owner(self) -> str:
        """The agent that owns everything in the session."""
        return self.entry.owner


def sequence_key(sequence: int) -> str:
    """The key of the entry with this number; keys sort like their numbers."""
    return f"{sequence:010d}"


def make_entry(
    context: OperationContext,
    loaded: LoadedSession,
    spec: KindSpec,
    key: str,
    value: msgspec.Struct,
    *,
    entry_id: str | None = None,
    origin: Origin | None = None,
    source: str | None = None,
    field: str = "value",
) -> Entry:
    """Returns a new entry of a session. Summaries and checkpoints contain what was carried over
    from the session that this one continues, so they are derived from it.

    field: the name of what makes the value large, for messages
    Raises ValidationError, ValueTooLargeError.
    """
    head, continued = loaded.entry, loaded.value.continues
    entry = make_governed_entry(
        context,
        spec,
        value,
        owner=head.owner,
        namespace=NAMESPACES[spec.name],
        key=key,
        scope=Scope(session_id=head.id),
        subjects=head.subjects,
        entry_id=entry_id,
        origin=origin,
        source=source,
        field=field,
    )
    if continued is None or spec is TURN:
        return entry
    sources = (Source(id=continued, version=1),)
    return replace(entry, provenance=replace(entry.provenance, derived_from=sources))


async def load_counters(context: OperationContext, session_id: str) -> SessionCounters:
    """Returns the counters of a session that exists."""
    counters = await context.transaction.records(SESSION_COUNTERS).get(session_id)
    if counters is None:
        raise LookupError("the session has no counters")
    return counters


async def store_counters(context: OperationContext, counters: SessionCounters) -> None:
    """Replaces the counters of a session."""
    await context.transaction.records(SESSION_COUNTERS).replace(counters)
