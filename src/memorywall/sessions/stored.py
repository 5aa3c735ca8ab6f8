"""The entries of a session: their names, and how their values are read and made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast

import msgspec

from memorywall.kinds.registry import KINDS
from memorywall.kinds.sessions import CHECKPOINT, SESSION, SUMMARY, TURN, Session
from memorywall.kinds.spec import KindSpec
from memorywall.records.entry import Entry, Origin, Scope
from memorywall.records.session_counters import SessionCounters
from memorywall.records.tier import Tier
from memorywall.service.operation_context import OperationContext
from memorywall.service.provenance import provenance_of
from memorywall.service.validation import encode_value
from memorywall.storage.sql.record_table import SESSION_COUNTERS

Value = TypeVar("Value", bound=msgspec.Struct)

NAMESPACES = {
    SESSION.name: "sessions",
    TURN.name: "turns",
    SUMMARY.name: "summaries",
    CHECKPOINT.name: "checkpoints",
}
"""The namespace of the entries of a kind."""
PARTITION = (TURN.name, SUMMARY.name, CHECKPOINT.name, "context", "scratch")
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


async def read_value(context: OperationContext, entry: Entry, schema: type[Value]) -> Value:
    """Returns the value of an entry as the struct of its kind."""
    opened = await context.service.cipher.open(context.transaction, entry)
    return msgspec.json.decode(opened.value, type=schema)


def make_entry(
    context: OperationContext,
    head: Entry,
    spec: KindSpec,
    key: str,
    value: msgspec.Struct,
    *,
    entry_id: str | None = None,
    origin: Origin | None = None,
    source: str | None = None,
) -> Entry:
    """Returns a new entry of a session.

    head: the entry of the session
    Raises ValidationError, ValueTooLargeError.
    """
    encoded = encode_value(cast(dict[str, Any], value))
    provenance = provenance_of(context.principal, False, origin, source)
    return Entry(
        tenant=context.tenant,
        id=entry_id or context.service.ids.next("mem"),
        tier=Tier.SESSION,
        owner=head.owner,
        agent_id=head.owner,
        namespace=NAMESPACES[spec.name],
        key=key,
        value=encoded,
        size=len(encoded),
        scope=Scope(session_id=head.id),
        created_at=context.now,
        updated_at=context.now,
        created_by=context.principal.id,
        provenance=msgspec.structs.replace(provenance, session=head.id),
        kind=spec.name,
        kind_version=KINDS[spec.name].version,
        listed=spec.listed,
        subjects=head.subjects,
    )


async def load_counters(context: OperationContext, session_id: str) -> SessionCounters:
    """Returns the counters of a session that exists."""
    counters = await context.transaction.records(SESSION_COUNTERS).get(session_id)
    if counters is None:
        raise LookupError("the session has no counters")
    return counters


async def store_counters(context: OperationContext, counters: SessionCounters) -> None:
    """Replaces the counters of a session."""
    await context.transaction.records(SESSION_COUNTERS).replace(counters)
