"""Checks of the fields of sessions and turns that need no stored data."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec.structs import replace

from memorywall.kinds.sessions import Participant, Session
from memorywall.records.clock import check_duration, iso_duration
from memorywall.records.errors import ValidationError
from memorywall.service.access.known_names import known_agent
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_name

MOST_PARTICIPANTS = 32
LONGEST_TITLE = 256
LONGEST_CLIENT_ID = 256
LONGEST_METADATA_NAME = 64
LONGEST_METADATA_TEXT = 256


def check_fields(session: Session) -> Session:
    """A session with its durations in ISO 8601. Raises ValidationError for an invalid title,
    metadata, client id or duration."""
    if len(session.title) > LONGEST_TITLE or "\0" in session.title:
        raise ValidationError(f"`title` may have at most {LONGEST_TITLE} characters and no NUL")
    check_metadata("metadata", session.metadata)
    client_id = session.client_id
    if client_id is not None:
        client_id = check_name("client_id", client_id, longest=LONGEST_CLIENT_ID)
    durations = {
        "idle_timeout": session.idle_timeout,
        "policy.retention": session.policy.retention,
        "policy.checkpoint_interval": session.policy.checkpoint_interval,
    }
    for field, duration in durations.items():
        if duration is not None:
            check_duration(field, duration)
            durations[field] = iso_duration(duration)
    policy = replace(
        session.policy,
        retention=durations["policy.retention"],
        checkpoint_interval=durations["policy.checkpoint_interval"],
    )
    return replace(
        session, idle_timeout=durations["idle_timeout"], policy=policy, client_id=client_id
    )


def check_metadata(field: str, metadata: Mapping[str, str | int | float]) -> None:
    """Raises ValidationError, which names the field, for an invalid name or value."""
    for name, value in metadata.items():
        check_name(f"{field}: a name", name, longest=LONGEST_METADATA_NAME, without="=")
        if isinstance(value, str):
            if len(value) > LONGEST_METADATA_TEXT or "\0" in value:
                raise ValidationError(
                    f"a text in `{field}` may have at most {LONGEST_METADATA_TEXT} characters and"
                    " no NUL"
                )
        elif not math.isfinite(value):
            raise ValidationError(f"a number in `{field}` must be finite")


async def check_participants(
    context: OperationContext, owner: str, participants: tuple[Participant, ...]
) -> tuple[Participant, ...]:
    """Returns the participants of a session. Raises ValidationError for too many, for the owner and
    for one that is named twice."""
    if len(participants) > MOST_PARTICIPANTS:
        raise ValidationError(f"a session may have at most {MOST_PARTICIPANTS} participants")
    names = [
        await known_agent(context, "participants.agent_id", one.agent_id) for one in participants
    ]
    if owner in names or len(set(names)) < len(names):
        raise ValidationError(
            "`participants` must name other agents than that of the session, each once"
        )
    return tuple(replace(one, agent_id=name) for one, name in zip(participants, names, strict=True))
