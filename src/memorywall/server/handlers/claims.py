"""Claims of keys of shared state."""

from __future__ import annotations

from memorywall.coordination import claims
from memorywall.server.dispatch import Call
from memorywall.server.replies import Reply, json_reply
from memorywall.wire.leases import ClaimList, claim_view, scope_namespace


async def acquire_claim(call: Call) -> Reply:
    body = call.body
    script = await claims.acquire(
        call.door,
        call.principal,
        scope_namespace(body.scope, call.principal.id),
        body.key,
        body.ttl_seconds,
        body.purpose,
    )
    return json_reply(claim_view(await call.door.store.write(call.principal.tenant, script)), 201)


async def list_claims(call: Call) -> Reply:
    asked = call.query
    scope = None if asked.scope is None else scope_namespace(asked.scope, call.principal.id)
    found = await claims.list_claims(call.door, call.principal, scope, asked.agent_id)
    return json_reply(ClaimList(claims=[claim_view(one) for one in found]))


async def get_claim(call: Call) -> Reply:
    return json_reply(
        claim_view(await claims.get(call.door, call.principal, call.path["claim_id"]))
    )


async def renew_claim(call: Call) -> Reply:
    script = await claims.extend(
        call.door, call.principal, call.path["claim_id"], call.body.ttl_seconds
    )
    return json_reply(claim_view(await call.door.store.write(call.principal.tenant, script)))


async def release_claim(call: Call) -> Reply:
    script = await claims.release(call.door, call.principal, call.path["claim_id"])
    await call.door.store.write(call.principal.tenant, script)
    return Reply(204, b"")
