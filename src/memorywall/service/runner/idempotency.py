"""Idempotency: the same Idempotency-Key returns the first response again.

The response is stored encrypted, whatever the sensitivity of its entries, and is erased together
with any of its entries. A later repetition is refused and does not create the entry again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import (
    IdempotencyConflictError,
    MemoryAccessError,
    ReplyErasedError,
)
from memorywall.records.idempotency import IdempotencyRecord
from memorywall.service.access.targets import load_target
from memorywall.service.requests.operation_context import (
    BoundFunction,
    OperationCall,
    OperationContext,
)
from memorywall.wire.results import HttpResponse, render

_ERASED = "an entry this request made has been deleted since"
_decode_content = msgspec.msgpack.Decoder(tuple[tuple[tuple[bytes, bytes], ...], bytes]).decode


async def run_idempotent(
    context: OperationContext, call: OperationCall, bound: BoundFunction
) -> HttpResponse:
    """Runs a bound function, or returns the stored response if this principal has used the key.

    Raises IdempotencyConflictError for a different request with the key, ReplyErasedError, and
    MemoryAccessError if the caller may not see the stored response.
    """
    key, principal = call.idempotency_key or "", context.principal
    cipher = context.service.cipher
    binding = f"reply\0{context.tenant}\0{principal.id}\0{key}"
    stored = await context.transaction.replies.get(principal.id, key)
    if stored is not None:
        return await _repeat(context, call, bound, stored, binding)
    result = await bound.run(context, call)
    response = render(call.operation, result)
    content = msgspec.msgpack.encode((response.headers, response.body))
    sealing_key, sealed = await cipher.seal_for(
        context.transaction, context.tenant, principal.id, content, binding, context.now
    )
    await context.transaction.replies.put(
        IdempotencyRecord(
            tenant=context.tenant,
            principal=principal.id,
            key=key,
            fingerprint=await cipher.digest(
                context.transaction, context.tenant, call.fingerprint, sealing_key
            ),
            status=response.status,
            reply=sealed,
            sealing_key=sealing_key,
            entry_ids=() if bound.shows is None else bound.shows(result),
            created_at=context.now,
        )
    )
    return response


async def _repeat(
    context: OperationContext,
    call: OperationCall,
    bound: BoundFunction,
    stored: IdempotencyRecord,
    binding: str,
) -> HttpResponse:
    context.is_repeated = True
    cipher, transaction = context.service.cipher, context.transaction
    fingerprint = await cipher.digest(
        transaction, stored.tenant, call.fingerprint, stored.sealing_key
    )
    if fingerprint != stored.fingerprint:
        raise IdempotencyConflictError(
            "this Idempotency-Key was used for another request; use a new key for a new request"
        )
    if bound.recheck is not None:
        await bound.recheck(context, call)
    for entry_id in stored.entry_ids:
        entry = await transaction.entries.get(entry_id, context.now)
        if entry is None:
            raise ReplyErasedError(_ERASED)
        await _check_access(context, entry, bound.repeat_verbs)
    if stored.reply is None:
        raise ReplyErasedError(_ERASED)
    content = await cipher.open_bytes(
        transaction, stored.tenant, stored.sealing_key, stored.reply, binding
    )
    headers, body = _decode_content(content)
    return HttpResponse(stored.status, body, headers)


async def _check_access(context: OperationContext, entry: Entry, verbs: Sequence[Verb]) -> None:
    """Raises MemoryAccessError if the caller has lost access to an entry of the stored response, or
    uses a key with fewer permissions."""
    for verb in verbs:
        if not context.allows(verb, await load_target(context, verb, entry)):
            raise MemoryAccessError(
                "this request was completed before, and this key may not see its response now"
            )
