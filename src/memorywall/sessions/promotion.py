"""The request to promote content of a session to long-term memory before the session ends."""

from __future__ import annotations

from memorywall.service.operation_context import OperationContext
from memorywall.sessions.stored import LoadedSession


async def request_promotion(context: OperationContext, loaded: LoadedSession) -> tuple[str, ...]:
    """Returns the ids of the entries that long-term memory accepts from an archived session.

    Nothing is promoted yet, so the result is empty.
    """
    return ()
