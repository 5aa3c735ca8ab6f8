"""Leases over the scopes of an intent."""

from __future__ import annotations

from memorywall.coordination import intent_leases
from memorywall.server.dispatch import Call
from memorywall.server.replies import Reply, json_reply
from memorywall.wire.leases import LeaseList, lease_view


async def acquire_lease(call: Call) -> Reply:
    script = await intent_leases.acquire(
        call.door,
        call.principal,
        call.path["intent_id"],
        call.body.scope,
        call.body.duration_seconds,
    )
    return json_reply(lease_view(await call.door.store.write(call.principal.tenant, script)), 201)


async def list_leases(call: Call) -> Reply:
    found = await intent_leases.list_leases(call.door, call.principal, call.path["intent_id"])
    return json_reply(LeaseList(leases=[lease_view(one) for one in found]))


async def renew_lease(call: Call) -> Reply:
    script = await intent_leases.extend(
        call.door,
        call.principal,
        call.path["intent_id"],
        call.path["lease_id"],
        call.body.duration_seconds,
    )
    return json_reply(lease_view(await call.door.store.write(call.principal.tenant, script)))


async def release_lease(call: Call) -> Reply:
    script = await intent_leases.release(
        call.door, call.principal, call.path["intent_id"], call.path["lease_id"]
    )
    await call.door.store.write(call.principal.tenant, script)
    return Reply(204, b"")
