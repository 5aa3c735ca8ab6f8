"""Writes that heed an Idempotency-Key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from memorywall.server.dispatch import Call
from memorywall.server.replies import Reply
from memorywall.storage.port import Script
from memorywall.wall.once import Reply as KeptReply
from memorywall.wall.once import once

Result = TypeVar("Result")


async def write_once(
    call: Call,
    script: Script[Result],
    render: Callable[[Result], Reply],
    shown: Callable[[Result], tuple[str, ...]],
    *,
    long: bool = False,
    recheck: Script[object] | None = None,
) -> Reply:
    """Runs a script, once only for each Idempotency-Key where the request has one; see
    `wall.once`."""
    if call.idempotency_key is None:
        return render(await call.door.store.write(call.principal.tenant, script, long=long))

    def keep(result: Result) -> KeptReply:
        reply = render(result)
        return KeptReply(reply.status, reply.headers, reply.body, shown(result))

    kept = await once(
        call.door,
        call.principal,
        call.idempotency_key,
        call.operation.name.encode() + b"\0" + call.content,
        script,
        keep,
        long=long,
        recheck=recheck,
    )
    return Reply(kept.status, kept.body, kept.headers)
