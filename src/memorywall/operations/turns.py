"""The turns of sessions."""

from __future__ import annotations

from memorywall.operations.binding import operation
from memorywall.operations.sessions import recheck_session
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.sessions import turns
from memorywall.sessions.provider_messages import new_turns
from memorywall.wire.sessions import (
    SessionResponse,
    session_view,
)
from memorywall.wire.turns import (
    TurnListResponse,
    TurnsResponse,
    counts_view,
    turn_view,
)


@operation("add_turns", recheck=recheck_session)
async def add_turns(context: OperationContext, call: OperationCall) -> TurnsResponse:
    wanted = new_turns(call.body.turns)
    added = await turns.add(context, call.path["session_id"], wanted)
    return TurnsResponse(
        turns=[turn_view(one.entry, one.turn) for one in added.turns],
        counts=counts_view(added.counters),
    )


@operation("list_turns")
async def list_turns(context: OperationContext, call: OperationCall) -> TurnListResponse:
    asked = call.query
    found = await turns.list_turns(
        context,
        call.path["session_id"],
        after=asked.after,
        before=asked.before_sequence,
        limit=asked.limit,
        newest_first=asked.newest_first,
        whole=asked.whole,
    )
    return TurnListResponse(turns=[turn_view(one.entry, one.turn) for one in found])


@operation("remove_turns", is_long=lambda call: True, shows=lambda shown: (shown.id,))
async def remove_turns(context: OperationContext, call: OperationCall) -> SessionResponse:
    asked = call.query
    loaded, counters = await turns.remove_from(
        context, call.path["session_id"], asked.first, asked.last
    )
    return session_view(loaded.entry, loaded.value, counters, context.now)
