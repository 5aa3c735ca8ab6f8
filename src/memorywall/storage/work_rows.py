"""Between the records of work and rows; what `rows.py` is for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from memorywall.records.attachment import Attachment
from memorywall.records.coordinator import Coordinator
from memorywall.records.intent import Intent, IntentGrant
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.namespace import Access
from memorywall.records.task import Task
from memorywall.storage.rows import Row, encode_body

_KINDS = {kind.value: kind for kind in LeaseKind}

decode_attachment = msgspec.json.Decoder(Attachment).decode
decode_coordinator = msgspec.json.Decoder(Coordinator).decode
decode_intent = msgspec.json.Decoder(Intent).decode
decode_task = msgspec.json.Decoder(Task).decode


def lease_from_row(row: Sequence[Any]) -> Lease:
    """The lease in a row of the `columns` of `leases.sql`."""
    return Lease(
        tenant=row[0],
        id=row[1],
        token=row[2],
        kind=_KINDS[row[3]],
        place=row[4],
        name=row[5],
        holder=row[6],
        purpose=row[7],
        acquired_at=row[8],
        renewed_at=row[9],
        expires_at=row[10],
    )


def lease_to_row(lease: Lease, now: str) -> Row:
    """The bindings of the statement `take`, which gives the lease its token."""
    return (
        lease.tenant,
        lease.id,
        lease.kind.value,
        lease.place,
        lease.name,
        lease.holder,
        lease.purpose,
        lease.acquired_at,
        lease.renewed_at,
        lease.expires_at,
        now,
    )


def intent_to_row(intent: Intent) -> Row:
    """The bindings of the statements `insert` and `replace` of `intents.sql`."""
    return (
        intent.tenant,
        intent.id,
        intent.created_by,
        intent.default_policy.value,
        intent.status.value,
        intent.parent_intent_id,
        encode_body(intent),
    )


def grant_from_row(row: Sequence[Any]) -> IntentGrant:
    """The line of an access list in a row of the `columns` of `intents.sql`."""
    return IntentGrant(
        tenant=row[0],
        intent_id=row[1],
        id=row[2],
        principal_id=row[3],
        principal_type=row[4],
        access=Access(row[5]),
        granted_by=row[6],
        granted_at=row[7],
        expires_at=row[8],
        reason=row[9],
    )


def grant_to_row(grant: IntentGrant) -> Row:
    """The bindings of the statement `add_grant`."""
    return (
        grant.tenant,
        grant.intent_id,
        grant.id,
        grant.principal_id,
        grant.principal_type,
        grant.access.value,
        grant.granted_by,
        grant.granted_at,
        grant.expires_at,
        grant.reason,
    )


def task_to_row(task: Task) -> Row:
    """The bindings of the statements `insert` and `replace` of `tasks.sql`."""
    return (
        task.tenant,
        task.id,
        task.intent_id,
        task.status.value,
        task.assigned_agent,
        encode_body(task),
    )


def coordinator_to_row(coordinator: Coordinator) -> Row:
    """The bindings of the statements `insert` and `replace` of `coordinators.sql`."""
    return (
        coordinator.tenant,
        coordinator.id,
        coordinator.intent_id,
        encode_body(coordinator),
    )


def attachment_to_row(attachment: Attachment) -> Row:
    """The bindings of the statements `insert` and `replace` of `attachments.sql`."""
    return (
        attachment.tenant,
        attachment.id,
        attachment.intent_id,
        encode_body(attachment),
    )
