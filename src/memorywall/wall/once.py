"""The same Idempotency-Key gives the first reply again.

The reply is kept encrypted, whatever the sensitivity of what it shows, and is erased together with
any entry in it. A repetition then learns that, and does not make the entry anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from memorywall.records.errors import IdempotencyConflictError, ReplyErasedError
from memorywall.records.idempotency import KeptReply
from memorywall.records.principal import Principal
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door

Result = TypeVar("Result")

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
) -> Reply:
    """Runs `work` unless `key` was used before by this principal.

    request: what makes two requests the same: operation and body
    Raises IdempotencyConflictError for another request under the key, ReplyErasedError.
    """
    now = door.now()
    tenant = principal.tenant
    await door.vault.prepare(door.store, tenant, now)
    binding = f"reply\0{tenant}\0{principal.id}\0{key}"

    async def script(transaction: Transaction) -> Reply:
        kept = await transaction.replies.get(tenant, principal.id, key)
        if kept is not None:
            return await _repeat(door, transaction, kept, request, binding, now)
        reply = render(await work(transaction))
        content = msgspec.msgpack.encode((reply.headers, reply.body))
        sealing_key, sealed = door.vault.seal_bytes(tenant, content, binding)
        await transaction.replies.put(
            KeptReply(
                tenant=tenant,
                principal=principal.id,
                key=key,
                fingerprint=await door.vault.digest(transaction, tenant, request),
                status=reply.status,
                reply=sealed,
                sealing_key=sealing_key,
                entry_ids=reply.entry_ids,
                created_at=now,
            )
        )
        return reply

    return await door.store.write(script)


async def _repeat(
    door: Door, transaction: Transaction, kept: KeptReply, request: bytes, binding: str, now: str
) -> Reply:
    fingerprint = await door.vault.digest(transaction, kept.tenant, request, kept.sealing_key)
    if fingerprint != kept.fingerprint:
        raise IdempotencyConflictError(
            "this Idempotency-Key was used for another request; use a new key for a new request"
        )
    gone = "an entry this request made has been deleted since"
    if kept.reply is None:
        raise ReplyErasedError(gone)
    for entry_id in kept.entry_ids:
        if await transaction.entries.get(kept.tenant, entry_id, now) is None:
            raise ReplyErasedError(gone)
    content = await door.vault.open_bytes(
        transaction, kept.tenant, kept.sealing_key, kept.reply, binding
    )
    headers, body = _decode_content(content)
    return Reply(kept.status, headers, body, ())
