"""Operations on sessions."""

from __future__ import annotations

from functools import partial

from memorywall.records.errors import (
    MemoryCapacityError,
    ResourceConflictError,
    ResourceNotFoundError,
)
from memorywall.records.principal import Permission
from memorywall.records.session_errors import SessionClosedError, SessionQuarantinedError
from memorywall.wire.operation import Operation
from memorywall.wire.sessions import (
    CheckpointListResponse,
    CheckpointRequest,
    CheckpointResponse,
    CloseRequest,
    ForkRequest,
    MatchRequest,
    MatchResponse,
    ParticipantRequest,
    ResumeRequest,
    ResumeResponse,
    SessionChange,
    SessionExport,
    SessionExportQuery,
    SessionListResponse,
    SessionQuery,
    SessionRequest,
    SessionResponse,
    TokenRequest,
    TokenResponse,
)
from memorywall.wire.turns import (
    TurnListResponse,
    TurnQuery,
    TurnRemovalQuery,
    TurnsRequest,
    TurnsResponse,
)

_ALL = "/api/v1/sessions"
_ONE = f"{_ALL}/{{session_id}}"
_FOUND = (ResourceNotFoundError,)
_KEPT = (ResourceNotFoundError, SessionQuarantinedError)
_OPEN = (*_KEPT, SessionClosedError)
_SOURCE = "memory wall 11.3"
_read = partial(Operation, group="Sessions", source=_SOURCE, permission=Permission.READ)
_write = partial(Operation, group="Sessions", source=_SOURCE, permission=Permission.WRITE)

# Paths with fixed segments come before paths with ids.
SESSION_OPERATIONS: tuple[Operation, ...] = (
    _write(
        name="create_session",
        method="POST",
        path=_ALL,
        summary="Create a session, which belongs to the caller.",
        body=SessionRequest,
        reply=SessionResponse,
        status=201,
        accepts_idempotency_key=True,
        raises=_FOUND,
        etag=True,
        location=f"{_ALL}/{{id}}",
        shrink="keep less in `state`",
    ),
    _read(
        name="list_sessions",
        method="GET",
        path=_ALL,
        summary="List the sessions of an agent, newest first.",
        query=SessionQuery,
        reply=SessionListResponse,
    ),
    _read(
        name="match_session",
        method="POST",
        path=f"{_ALL}/match",
        summary="Find the session of a person that a new text continues, if any.",
        body=MatchRequest,
        reply=MatchResponse,
        safe=True,
    ),
    _read(
        name="get_session",
        method="GET",
        path=_ONE,
        summary="Get a session with its counters.",
        reply=SessionResponse,
        raises=_FOUND,
    ),
    _write(
        name="update_session",
        method="PATCH",
        path=_ONE,
        summary="Replace the title, the state, the token budget or parts of the policy.",
        body=SessionChange,
        reply=SessionResponse,
        if_match="optional",
        raises=(*_KEPT, ResourceConflictError),
        etag=True,
        shrink="keep less in `state`",
    ),
    _write(
        name="delete_session",
        method="DELETE",
        path=_ONE,
        summary="Delete a session with its turns, summaries and checkpoints.",
        status=204,
        raises=_FOUND,
    ),
    _write(
        name="set_session_participant",
        method="PUT",
        path=f"{_ONE}/participants/{{agent_id}}",
        summary="Add an agent to a session, or change its access.",
        body=ParticipantRequest,
        reply=SessionResponse,
        raises=_KEPT,
    ),
    _write(
        name="remove_session_participant",
        method="DELETE",
        path=f"{_ONE}/participants/{{agent_id}}",
        summary="Remove an agent from a session, with effect on its next request.",
        status=204,
        raises=_FOUND,
    ),
    _write(
        name="add_turns",
        method="POST",
        path=f"{_ONE}/turns",
        summary="Add up to 100 turns to a session, all or none.",
        body=TurnsRequest,
        reply=TurnsResponse,
        status=201,
        accepts_idempotency_key=True,
        raises=(*_OPEN, ResourceConflictError, MemoryCapacityError),
        shrink="send fewer turns at once, or keep large content elsewhere and name it in `source`",
    ),
    _read(
        name="list_turns",
        method="GET",
        path=f"{_ONE}/turns",
        summary="List turns of a session in the order of their sequence.",
        query=TurnQuery,
        reply=TurnListResponse,
        raises=_FOUND,
    ),
    _write(
        name="remove_turns",
        method="DELETE",
        path=f"{_ONE}/turns",
        summary="Remove the turns of a session from a sequence on, or all of them.",
        query=TurnRemovalQuery,
        reply=SessionResponse,
        raises=_OPEN,
    ),
    _write(
        name="create_checkpoint",
        method="POST",
        path=f"{_ONE}/checkpoints",
        summary="Make a checkpoint of a session, with a summary of its turns.",
        body=CheckpointRequest,
        reply=CheckpointResponse,
        status=201,
        accepts_idempotency_key=True,
        raises=_OPEN,
        shrink="keep less in `working` and `state`",
    ),
    _read(
        name="list_checkpoints",
        method="GET",
        path=f"{_ONE}/checkpoints",
        summary="List the checkpoints of a session, newest first.",
        reply=CheckpointListResponse,
        raises=_FOUND,
    ),
    _write(
        name="resume_session",
        method="POST",
        path=f"{_ONE}/resume",
        summary="Resume a session from a checkpoint, with the turns that it does not summarize.",
        body=ResumeRequest,
        reply=ResumeResponse,
        raises=_OPEN,
    ),
    _write(
        name="fork_session",
        method="POST",
        path=f"{_ONE}/fork",
        summary="Create a session with copies of the turns of another one up to a sequence.",
        body=ForkRequest,
        reply=SessionResponse,
        status=201,
        accepts_idempotency_key=True,
        raises=(*_KEPT, ResourceConflictError, MemoryCapacityError),
    ),
    _write(
        name="close_session",
        method="POST",
        path=f"{_ONE}/close",
        summary="Close a session; it accepts no more turns.",
        body=CloseRequest,
        reply=SessionResponse,
        raises=_KEPT,
    ),
    _write(
        name="archive_session",
        method="POST",
        path=f"{_ONE}/archive",
        summary="Archive a session; it is deleted when its retention is over.",
        reply=SessionResponse,
        raises=_KEPT,
    ),
    _read(
        name="issue_session_token",
        method="POST",
        path=f"{_ONE}/token",
        summary="Sign a token, with which the caller's requests are inside this session.",
        body=TokenRequest,
        reply=TokenResponse,
        raises=_OPEN,
    ),
    _read(
        name="export_session",
        method="GET",
        path=f"{_ONE}/export",
        summary="Export a session, its checkpoints and its turns, in pages of turns.",
        query=SessionExportQuery,
        reply=SessionExport,
        raises=_FOUND,
    ),
)
