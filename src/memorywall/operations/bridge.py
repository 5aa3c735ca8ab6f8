"""The route of the protocol's MCP bridge: working memory by name, with any JSON value."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.operations.binding import operation
from memorywall.records.copier import copier
from memorywall.records.draft import EntryPatch, NewEntry
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryAccessError, MemoryNotFoundError
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import is_same_name
from memorywall.records.tier import Tier
from memorywall.service.entries.checks import check_new
from memorywall.service.entries.create import create_checked
from memorywall.service.entries.matches import query_matches
from memorywall.service.entries.update import update
from memorywall.service.requests.namespace_names import find_holder
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.agents import BridgeResponse

_WRAPPING = {"value"}


@operation("put_bridged")
async def put_bridged(context: OperationContext, call: OperationCall) -> BridgeResponse:
    path, agent = call.path, context.principal.id
    if not is_same_name(path["agent_id"], agent):
        raise MemoryAccessError("the agent in the path must be the one this request speaks for")
    ttl = None
    if call.body.ttl_seconds is not None:
        ttl = f"duration:PT{call.body.ttl_seconds}S"
    value = _wrapped(call.body.value)
    namespace, key = path["namespace"], path["key"]
    draft = NewEntry(namespace=namespace, key=key, value=value, memory_type=Tier.WORKING, ttl=ttl)
    checked = check_new(context, draft)
    stored = await find_holder(context, checked.entry)
    if stored is None:
        return _bridge_view(await create_checked(context, checked))
    # The entry is read and changed in one transaction, so its version is the current one.
    change = EntryPatch(value=value, ttl=ttl)
    return _bridge_view(await update(context, stored.id, stored.version, change))


@operation("get_bridged")
async def get_bridged(context: OperationContext, call: OperationCall) -> BridgeResponse:
    path = call.path
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=(Tier.WORKING,),
        agent_id=path["agent_id"],
        namespace=path["namespace"],
        key=path["key"],
        limit=1,
    )
    page = await query_matches(context, wanted)
    if not page.entries:
        if not is_same_name(path["agent_id"], context.principal.id):
            # Whether another agent has an entry of this name must not be revealed.
            raise MemoryAccessError("this memory belongs to another agent")
        raise MemoryNotFoundError
    return _bridge_view(page.entries[0])


def _wrapped(value: Any) -> dict[str, Any]:
    """Returns an object unchanged, and any other value as `{"value": ...}`. An object whose only
    member is `value` is also wrapped, so that GET returns the value that was put."""
    if isinstance(value, dict) and set(value) != _WRAPPING:
        return value
    return {"value": value}


_bridge = copier(Entry, BridgeResponse, given=["value"])


def _bridge_view(entry: Entry) -> BridgeResponse:
    value = msgspec.json.decode(entry.value)
    if set(value) == _WRAPPING:
        value = value["value"]
    return _bridge(entry, value=value)
