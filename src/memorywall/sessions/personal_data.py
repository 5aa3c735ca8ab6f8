"""Personal data in what callers write into sessions, by the policy of the session and that of the
server.

Ids are kept, because others refer to them: `client_id`, `tool_call_id`, agents and subjects.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from memorywall.kinds.sessions import SESSION, TURN, Session, ToolCall, Turn
from memorywall.records.errors import ValidationError
from memorywall.redaction.personal_data import apply, choose_stricter, find
from memorywall.service.entries.redaction import redact_value
from memorywall.service.requests.operation_context import OperationContext

Json = TypeVar("Json")


def policy_of(context: OperationContext, session: Session) -> str:
    """Returns the policy for text in a session: the stricter of its own and that of the server."""
    return choose_stricter(session.policy.personal_data, context.service.settings.personal_data)


def mask_personal_data(policy: str, value: Json) -> Json:
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
    turn, found = redact_value(policy, TURN, turn)
    calls: list[ToolCall] = []
    for call in turn.tool_calls:
        arguments, inside = apply(policy, call.arguments)
        calls.append(replace(call, arguments=arguments))
        found = tuple(dict.fromkeys((*found, *inside)))
    return replace(turn, tool_calls=tuple(calls), personal_data=found)


def screen_session(context: OperationContext, session: Session) -> Session:
    """Returns a session as its policy stores it. Raises ValidationError for a name of the caller's
    with personal data, which cannot be masked because the caller finds the session by it."""
    if policy_of(context, session) != "mask":
        return session
    if session.client_id is not None and find(session.client_id):
        raise ValidationError("`client_id` must not contain personal data in this session")
    return redact_value("mask", SESSION, session)[0]
