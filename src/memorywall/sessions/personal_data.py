"""Personal data in what callers write into sessions, by the policy of the session and that of the
server.

Ids are kept, because others refer to them: `client_id`, `tool_call_id`, agents and subjects.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from memorywall.kinds.sessions import Session, ToolCall, Turn
from memorywall.redaction.personal_data import apply, stricter
from memorywall.service.requests.operation_context import OperationContext

Json = TypeVar("Json")
_OF_TURN = ("content", "name", "source", "metadata")
_OF_SESSION = ("title", "state", "metadata", "closed_reason")


def policy_of(context: OperationContext, session: Session) -> str:
    """Returns the policy for text in a session: the stricter of its own and that of the server."""
    return stricter(session.policy.personal_data, context.service.settings.personal_data)


def masked(policy: str, value: Json) -> Json:
    """Returns a JSON value without personal data if the policy is `mask`."""
    if policy != "mask":
        return value
    screened: Json = apply(policy, value)[0]
    return screened


def screen(policy: str, turn: Turn) -> Turn:
    """Returns a turn as the policy of its session stores it, with the kinds of personal data that
    were found.

    policy: `keep`, `mark` or `mask`
    """
    if policy == "keep":
        return turn
    fields, found = _apply(policy, {name: getattr(turn, name) for name in _OF_TURN})
    calls: list[ToolCall] = []
    for call in turn.tool_calls:
        arguments, inside = apply(policy, call.arguments)
        calls.append(replace(call, arguments=arguments))
        found = tuple(dict.fromkeys((*found, *inside)))
    return replace(turn, **fields, tool_calls=tuple(calls), personal_data=found)


def screen_session(context: OperationContext, session: Session) -> Session:
    """Returns a session as its policy stores it."""
    policy = policy_of(context, session)
    if policy != "mask":
        return session
    fields, found = _apply(policy, {name: getattr(session, name) for name in _OF_SESSION})
    return replace(session, **fields) if found else session


def _apply(policy: str, fields: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    # The names of the fields contain no personal data.
    screened, found = apply(policy, fields)
    return screened, found
