"""The saved states of sessions."""

from __future__ import annotations

from memorywall.kinds.sessions import SavedState
from memorywall.operations.binding import operation
from memorywall.operations.sessions import recheck_session
from memorywall.records.copier import copier
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.sessions import saved_states
from memorywall.sessions.saved_states import StoredState
from memorywall.wire.turns import SavedStateListResponse, SavedStateResponse


@operation("put_saved_state", recheck=recheck_session)
async def put_saved_state(context: OperationContext, call: OperationCall) -> SavedStateResponse:
    body = call.body
    saved = await saved_states.put(
        context,
        call.path["session_id"],
        call.path["name"],
        body.data,
        body.parent,
        body.metadata,
        must_create=call.if_none_match,
    )
    return _view(saved, with_data=False)


@operation("get_saved_state")
async def get_saved_state(context: OperationContext, call: OperationCall) -> SavedStateResponse:
    found = await saved_states.get(context, call.path["session_id"], call.path["name"])
    return _view(found, with_data=True)


@operation("list_saved_states")
async def list_saved_states(
    context: OperationContext, call: OperationCall
) -> SavedStateListResponse:
    asked = call.query
    found, has_more = await saved_states.list_states(
        context,
        call.path["session_id"],
        after=asked.after_name,
        before=asked.before_name,
        limit=asked.limit,
        with_data=asked.with_data,
    )
    return SavedStateListResponse(
        saved_states=[_view(one, with_data=asked.with_data) for one in found],
        next=found[-1].entry.key if has_more else None,
    )


@operation("delete_saved_state", is_long=lambda call: True)
async def delete_saved_state(context: OperationContext, call: OperationCall) -> None:
    await saved_states.delete(context, call.path["session_id"], call.path["name"])


_shown = copier(SavedState, SavedStateResponse, given=["id", "name", "created_at", "data"])


def _view(stored: StoredState, *, with_data: bool) -> SavedStateResponse:
    entry, state = stored.entry, stored.state
    data = state.data if with_data else None
    return _shown(state, id=entry.id, name=entry.key, created_at=entry.created_at, data=data)
