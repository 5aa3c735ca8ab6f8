"""The same Idempotency-Key gives the first reply again.

The reply is kept encrypted, whatever the sensitivity of what it shows, and is erased together with
any entry in it. A repetition then learns that, and does not make the entry anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from memorywall.policy.decide import decide
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import (
    IdempotencyConflictError,
    MemoryAccessError,
    ReplyErasedError,
)
from memorywall.records.idempotency import KeptReply
from memorywall.records.principal import Principal
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door, target_of

Result = TypeVar("Result")

_ERASED = "an entry this request made has been deleted since"
_decode_content = msgspec.msgpack.Decoder(tuple[tuple[tuple[bytes, bytes], ...], bytes]).decode


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished reply: its status, its headers, its body, the entries it shows."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    entry_ids: tuple[str, ...]


async def once(
    door: Door,
    principal: Principal,
    key: str,
    request: bytes,
    work: Script[Result],
    render: Callable[[Result], Reply],
    *,
    long: bool = False,
    recheck: Script[object] | None = None,
) -> Reply:
    """Runs `work` unless `key` was used before by this principal.

    request: what makes two requests the same: operation and body
    recheck: raises where the first reply may not be shown any more; entries in it are looked at
        anyway
    Raises IdempotencyConflictError for another request under the key, ReplyErasedError.
    """
    now = door.now()
    tenant = principal.tenant
    binding = f"reply\0{tenant}\0{principal.id}\0{key}"

    async def script(transaction: Transaction) -> Reply:
        kept = await transaction.replies.get(tenant, principal.id, key)
        if kept is not None:
            return await _repeat(door, transaction, principal, kept, request, binding, recheck)
        reply = render(await work(transaction))
        content = msgspec.msgpack.encode((reply.headers, reply.body))
        sealing_key, sealed = await door.vault.seal_for(
            transaction, tenant, principal.id, content, binding, now
        )
        await transaction.replies.put(
            KeptReply(
                tenant=tenant,
                principal=principal.id,
                key=key,
                fingerprint=await door.vault.digest(transaction, tenant, request, sealing_key),
                status=reply.status,
                reply=sealed,
                sealing_key=sealing_key,
                entry_ids=reply.entry_ids,
                created_at=now,
            )
        )
        return reply

    return await door.store.write(tenant, script, long=long)


async def _repeat(
    door: Door,
    transaction: Transaction,
    principal: Principal,
    kept: KeptReply,
    request: bytes,
    binding: str,
    recheck: Script[object] | None,
) -> Reply:
    fingerprint = await door.vault.digest(transaction, kept.tenant, request, kept.sealing_key)
    if fingerprint != kept.fingerprint:
        raise IdempotencyConflictError(
            "this Idempotency-Key was used for another request; use a new key for a new request"
        )
    if recheck is not None:
        await recheck(transaction)
    now = door.now()
    for entry_id in kept.entry_ids:
        entry = await transaction.entries.get(kept.tenant, entry_id, now)
        if entry is None:
            raise ReplyErasedError(_ERASED)
        await _check_access(transaction, principal, entry, now)
    if kept.reply is None:
        raise ReplyErasedError(_ERASED)
    content = await door.vault.open_bytes(
        transaction, kept.tenant, kept.sealing_key, kept.reply, binding
    )
    headers, body = _decode_content(content)
    return Reply(kept.status, headers, body, ())


async def _check_access(
    transaction: Transaction, principal: Principal, entry: Entry, now: str
) -> None:
    """What the first reply showed may have been walled off since, or this key may do less than the
    one that made it."""
    for verb in (Verb.UPDATE, Verb.READ):
        target = await target_of(transaction, principal, verb, entry, now)
        if not decide(principal, verb, target).allowed:
            raise MemoryAccessError(
                "this request was carried out before, and this key may not see its reply now"
            )
