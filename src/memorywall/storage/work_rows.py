"""Converts leases to rows and rows to leases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from memorywall.records.lease import Lease, LeaseKind
from memorywall.storage.rows import Row

_KINDS = {kind.value: kind for kind in LeaseKind}

_encode = msgspec.json.Encoder().encode


def encode_text(text: str) -> str:
    """Returns a text in the form of a JSON record body, with its quotation marks."""
    return _encode(text).decode()


def lease_from_row(row: Sequence[Any]) -> Lease:
    """Converts a row with the `columns` of `leases.sql` to a lease."""
    return Lease(
        tenant=row[0],
        id=row[1],
        token=row[2],
        kind=_KINDS[row[3]],
        parent=row[4],
        name=row[5],
        holder=row[6],
        purpose=row[7],
        acquired_at=row[8],
        renewed_at=row[9],
        expires_at=row[10],
    )


def lease_to_row(lease: Lease, now: str) -> Row:
    """Returns the bindings of the statement `take`, which gives the lease its token."""
    return (
        lease.tenant,
        lease.id,
        lease.kind.value,
        lease.parent,
        lease.name,
        lease.holder,
        lease.purpose,
        lease.acquired_at,
        lease.renewed_at,
        lease.expires_at,
        now,
    )
