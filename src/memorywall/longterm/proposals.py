"""Makes proposals, which wait for a person in place of what must not be stored yet."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from memorywall.kinds.promotions import PROPOSAL, Proposal
from memorywall.records.entry import Entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import encode_value

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def proposal_for(
    context: OperationContext,
    entry: Entry,
    *,
    rule: str,
    reason: str,
    contradicts: Collection[str] = (),
    replaces: str | None = None,
) -> Entry:
    """Returns the entry of a proposal to store `entry`. It has the tier, namespace, sensitivity,
    subjects and provenance of that entry, so that who may read the one may read the other.

    entry: what would be stored, with its value in clear text
    rule, reason: which rule deferred it, and what a person should know
    contradicts: the ids of the entries that it contradicts
    replaces: the id of the entry whose value it would replace; default: none

    Raises ValueTooLargeError.
    """
    proposal = Proposal(
        rule=rule,
        reason=reason,
        kind=entry.kind,
        value=_decode(entry.value),
        key=entry.key if entry.key != entry.id else "",
        replaces=replaces,
        contradicts=tuple(contradicts),
    )
    encoded = encode_value(cast(dict[str, Any], proposal))
    # The same proposal again has the same key, so that a retry leaves one.
    digest = hashlib.sha256(encoded).hexdigest()[:32]
    return replace(
        entry,
        id=context.service.ids.next("mem"),
        key=f"proposal/{digest}",
        value=encoded,
        size=len(encoded),
        kind=PROPOSAL.name,
        kind_version=PROPOSAL.version,
        listed=PROPOSAL.listed,
        version=1,
        tags=(),
        ttl=None,
        expires_at=None,
        pinned=False,
        created_at=context.now,
        updated_at=context.now,
        created_by=context.principal.id,
    )
