"""Tokens of sessions."""

from __future__ import annotations

from datetime import timedelta

from memorywall.operations.binding import operation
from memorywall.records.clock import after, check_duration, instant_to_milliseconds
from memorywall.records.decision import Verb
from memorywall.records.errors import MemoryAccessError, ValidationError
from memorywall.service.access.session_tokens import SessionToken, sign
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.sessions.access import check_open, load_session
from memorywall.sessions.stored import load_counters
from memorywall.wire.sessions import TokenResponse

LONGEST = timedelta(days=1)


@operation("issue_session_token")
async def issue_session_token(context: OperationContext, call: OperationCall) -> TokenResponse:
    """Signs a token for the caller, which allows no more than the caller's key. Raises
    ValidationError, MemoryAccessError, ResourceNotFoundError, SessionClosedError,
    SessionQuarantinedError."""
    principal = context.principal
    if not principal.key:
        raise MemoryAccessError("only a request with an API key gets a session token")
    loaded = await load_session(context, call.path["session_id"], Verb.READ)
    check_open(loaded, await load_counters(context, loaded.id), context.moment)
    expires_at = after(context.moment, _duration(call.body.ttl))
    for latest in (loaded.value.ends_at, principal.key_expires_at):
        if latest is not None:
            expires_at = min(expires_at, latest)
    token = SessionToken(
        tenant=context.tenant,
        key=principal.key,
        agent=principal.id,
        session=loaded.id,
        expires=instant_to_milliseconds(expires_at),
    )
    return TokenResponse(
        token=await sign(context, token),
        session_id=loaded.id,
        agent_id=principal.id,
        expires_at=expires_at,
    )


def _duration(text: str) -> timedelta:
    duration = check_duration("ttl", text)
    if duration > LONGEST:
        raise ValidationError("`ttl` may be at most one day, such as `PT1H` (1 hour)")
    return duration
