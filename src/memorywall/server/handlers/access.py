"""Access lists of intents."""

from __future__ import annotations

from memorywall.coordination import access
from memorywall.coordination.access import AccessList, NewGrant
from memorywall.records.namespace import Access
from memorywall.server.dispatch import Call
from memorywall.server.filters import instant_in_body
from memorywall.server.replies import Reply, json_reply
from memorywall.wire.access import AccessView, GrantBody, grant_view


async def get_access(call: Call) -> Reply:
    return _access_reply(await access.get_access(call.door, call.principal, call.path["intent_id"]))


async def set_access(call: Call) -> Reply:
    script = await access.set_access(
        call.door,
        call.principal,
        call.path["intent_id"],
        call.body.default_policy,
        [_new_grant(entry) for entry in call.body.entries],
    )
    return _access_reply(await call.door.store.write(call.principal.tenant, script))


async def grant_access(call: Call) -> Reply:
    script = await access.grant(
        call.door, call.principal, call.path["intent_id"], _new_grant(call.body)
    )
    return json_reply(grant_view(await call.door.store.write(call.principal.tenant, script)), 201)


async def revoke_access(call: Call) -> Reply:
    script = await access.revoke(
        call.door, call.principal, call.path["intent_id"], call.path["grant_id"]
    )
    await call.door.store.write(call.principal.tenant, script)
    return Reply(204, b"")


def _new_grant(entry: GrantBody) -> NewGrant:
    return NewGrant(
        principal_id=entry.principal_id,
        principal_type=entry.principal_type,
        access=Access(entry.permission),
        reason=entry.reason,
        expires_at=instant_in_body("expires_at", entry.expires_at),
    )


def _access_reply(found: AccessList) -> Reply:
    return json_reply(
        AccessView(
            intent_id=found.intent.id,
            default_policy=found.intent.default_policy,
            entries=[grant_view(one) for one in found.grants],
        )
    )
