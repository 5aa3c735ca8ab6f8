"""The route of the protocol's MCP bridge: working memory by name, whatever the value."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.records.draft import Change, Draft
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryAccessError, MemoryNotFoundError
from memorywall.records.filter import Filter
from memorywall.records.tier import Tier
from memorywall.server.dispatch import Call
from memorywall.server.replies import Reply, json_reply
from memorywall.storage.port import Transaction
from memorywall.wall import entries, queries
from memorywall.wire.agents import BridgeView

_WRAPPING = {"value"}


async def put_bridged(call: Call) -> Reply:
    path, door = call.path, call.door
    if path["agent_id"] != call.principal.id:
        raise MemoryAccessError("the agent in the path must be the one this request speaks for")
    ttl = None
    if call.body.ttl_seconds is not None:
        ttl = f"duration:PT{call.body.ttl_seconds}S"
    draft = Draft(
        namespace=path["namespace"],
        key=path["key"],
        value=_wrapped(call.body.value),
        memory_type=Tier.WORKING,
        ttl=ttl,
    )
    creating = await entries.create(door, call.principal, draft)

    async def script(transaction: Transaction) -> Entry:
        there = await transaction.entries.find(
            call.principal.tenant, Tier.WORKING, call.principal.id, draft.namespace, draft.key
        )
        if there is None or (there.expires_at is not None and there.expires_at <= door.now()):
            return await creating(transaction)
        change = Change(value=draft.value, ttl=ttl)
        # The entry is read and changed in one transaction, so its version is the current one.
        changing = await entries.update(door, call.principal, there.id, there.version, change)
        return await changing(transaction)

    return _bridge_reply(await door.store.write(call.principal.tenant, script))


async def get_bridged(call: Call) -> Reply:
    path = call.path
    wanted = Filter(
        tenant=call.principal.tenant,
        tiers=(Tier.WORKING,),
        agent_id=path["agent_id"],
        namespace=path["namespace"],
        key=path["key"],
        limit=1,
    )
    page = await queries.query(call.door, call.principal, wanted)
    if not page.entries:
        if path["agent_id"] != call.principal.id:
            # Whether another agent has something of this name is nobody else's business.
            raise MemoryAccessError("this memory belongs to another agent")
        raise MemoryNotFoundError
    return _bridge_reply(page.entries[0])


def _wrapped(value: Any) -> dict[str, Any]:
    """An object as it is, anything else as `{"value": ...}`; and such an object as well, so that
    what comes back is what was put."""
    if isinstance(value, dict) and set(value) != _WRAPPING:
        return value
    return {"value": value}


def _bridge_reply(entry: Entry) -> Reply:
    value = msgspec.json.decode(entry.value)
    if set(value) == _WRAPPING:
        value = value["value"]
    return json_reply(
        BridgeView(
            agent_id=entry.agent_id,
            namespace=entry.namespace,
            key=entry.key,
            value=value,
            version=entry.version,
            updated_at=entry.updated_at,
            expires_at=entry.expires_at,
        )
    )
