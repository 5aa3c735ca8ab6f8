"""Sessions: conversations with people."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.kinds.session_end import OPEN, find_end_reason, idle_end
from memorywall.kinds.sessions import (
    CheckpointsKept,
    CheckpointTurns,
    CompactionThreshold,
    Metadata,
    Participant,
    ParticipantAccess,
    PersonalData,
    Session,
    SessionPolicy,
    SessionStatus,
    Summarizer,
)
from memorywall.records.copier import copier
from memorywall.records.entry import Entry
from memorywall.records.errors import (
    MemoryCapacityError,
    ResourceConflictError,
    ResourceNotFoundError,
)
from memorywall.records.feature_errors import SessionClosedError, SessionQuarantinedError
from memorywall.records.principal import Permission
from memorywall.records.session import SessionCounters
from memorywall.wire.operation import Operation
from memorywall.wire.turns import (
    CHECKPOINT_OPERATIONS,
    SESSIONS,
    TURN_OPERATIONS,
    CheckpointResponse,
    Position,
    SessionCounts,
    SessionPageLimit,
    TurnNumber,
    TurnRemovalQuery,
    TurnResponse,
    counts_view,
)

ListedStatus = Literal["open", "active", "checkpointed", "closed", "archived", "quarantined"]
Person = Annotated[str | None, Meta(description="The person.")]
TokenBudget = Annotated[int, Meta(ge=1, le=10_000_000)]


class SessionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new session.

    user: the person that the session is held with
    title: a text for people, at most 256 characters
    participants: other agents that take part
    ttl: the hard limit of the session's duration (ISO 8601 duration)
    ends_at: the same as an RFC 3339 instant
    idle_timeout: the time without a turn after which the session is closed (ISO 8601 duration)
    token_budget: the most tokens of the summary and the turns in a context; null for what the
        window leaves
    state: initial state, free JSON
    policy: the rules of the session
    metadata: texts and numbers by name, at most 16, by which lists filter
    continues: the id of the session of the same person that it continues; it begins with the
        summary of that session
    with_state: whether it also begins with the state of that session
    client_id: a name of the caller's choice, unique among its sessions with the person; the session
        that has it already is returned as it is, also one that has ended
    reuse: whether the caller's newest open session with the person is returned instead, as it is,
        if there is one. If the newest one has ended by its idle timeout, the new one continues it.
    """

    user: Person = None
    title: str = ""
    participants: tuple[Participant, ...] = ()
    ttl: str | None = None
    ends_at: str | None = None
    idle_timeout: str | None = None
    token_budget: TokenBudget | None = None
    state: dict[str, Any] = {}
    policy: SessionPolicy = SessionPolicy()
    metadata: Metadata = {}
    continues: str | None = None
    with_state: bool = False
    client_id: Annotated[
        str | None, Meta(description="A name of the caller's choice, unique with the person.")
    ] = None
    reuse: bool = False


class SessionPolicyChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a session's policy to replace; absent fields stay. See `SessionPolicy`."""

    personal_data: PersonalData | UnsetType = UNSET
    retention: str | UnsetType | None = UNSET
    checkpoint_turns: CheckpointTurns | UnsetType = UNSET
    checkpoint_interval: str | UnsetType | None = UNSET
    checkpoint_on_error: bool | UnsetType = UNSET
    checkpoints_kept: CheckpointsKept | UnsetType = UNSET
    compaction_threshold: CompactionThreshold | UnsetType = UNSET
    summarizer: Summarizer | UnsetType = UNSET


class SessionChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a session to replace; absent fields stay.

    ttl, ends_at: the hard limit of an open session, as a duration from now or as an instant; null
        removes it
    idle_timeout: of an open session, from its last turn; null removes it
    """

    title: str | UnsetType = UNSET
    state: dict[str, Any] | UnsetType = UNSET
    token_budget: TokenBudget | UnsetType | None = UNSET
    policy: SessionPolicyChange | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    ttl: str | UnsetType | None = UNSET
    ends_at: str | UnsetType | None = UNSET
    idle_timeout: str | UnsetType | None = UNSET


class SessionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects sessions.

    status: only sessions with this status; `open` stands for `active` and `checkpointed`
    user: only sessions with this person
    agent_id: the agent of the sessions; default: the caller. Of another agent's sessions those are
        listed in which the caller participates.
    participating: whether the sessions of other agents are listed in which the caller participates
    metadata: only sessions with these values, as a JSON object such as `{"channel": "mail"}`
    client_id: only the caller's session of this name with `user`, or with nobody without a user
    before: the id of the last received session; the list continues after it
    """

    status: ListedStatus | None = None
    user: Person = None
    agent_id: str | None = None
    participating: bool = False
    metadata: Annotated[
        str | None, Meta(description="Only sessions with these values, as a JSON object.")
    ] = None
    client_id: Annotated[
        str | None, Meta(description="Only the caller's session of this name with the person.")
    ] = None
    before: str | None = None
    limit: SessionPageLimit = 50


class SessionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A session.

    status: `closed` from the instant at which its time is over
    idle_at: the instant at which the idle timeout closes an open session without another turn
    """

    id: str
    agent_id: str
    subject: str | None
    status: SessionStatus
    title: str
    participants: tuple[Participant, ...]
    ends_at: str | None
    idle_timeout: str | None
    idle_at: str | None
    clear_at: str | None
    token_budget: int | None
    state: dict[str, Any]
    policy: SessionPolicy
    metadata: Metadata
    continues: str | None
    client_id: str | None
    closed_reason: str | None
    version: int
    created_at: str
    updated_at: str
    counts: SessionCounts


class SessionListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions, newest first.

    next: the value of `before` for the next page; None after the last page
    """

    sessions: list[SessionResponse]
    next: str | None


class ParticipantRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The access of a participant: `read`, or `append` to add turns as well."""

    access: ParticipantAccess = "append"


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session to resume.

    checkpoint: the number of the checkpoint; default: the newest one
    replay: the most turns to return of those after the summary: the newest ones
    reopen: whether a session that its idle timeout has closed is opened again
    """

    checkpoint: TurnNumber | None = None
    replay: Annotated[int, Meta(ge=0, le=1_000)] = 200
    reopen: bool = False


class ResumeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A resumed session.

    checkpoint: the checkpoint; null for a session without one
    summary: the text of what came before `turns`: the summary of the checkpoint, or without one
        that of the session that this one continues; empty if there is none
    turns: the turns after those that the checkpoint's summary covers
    has_more: whether the oldest of these turns are left out, because there are more than `replay`;
        read them with `before_sequence`
    """

    session: SessionResponse
    checkpoint: CheckpointResponse | None
    summary: str
    turns: list[TurnResponse]
    has_more: bool


class ForkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fork of a session.

    sequence: the last copied turn; default: the last turn
    title: the title of the new session; default: that of the other one
    """

    sequence: Position | None = None
    title: str | None = None


class CloseRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session to close.

    reason: why, at most 256 characters
    """

    reason: Annotated[str, Meta(min_length=1, max_length=256)] = "request"


class MatchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new text of a person.

    user: the person; default: the person that the request is bound to; without either, sessions
        that are held with nobody are compared
    text: the text, whose intent decides
    """

    user: Person = None
    text: Annotated[str, Meta(min_length=1, max_length=65_536)]


class SessionScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score, from 0 to 1, with which a text continues a session."""

    session_id: str
    score: float


class MatchResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The session that a text continues.

    session_id: the session; null if the text continues none of them
    status: its status, `closed` from the instant at which its time is over
    score: the score of the best session, 0 without any
    threshold: the least score of a continuation
    method: `embedding` or `words`; `follow_up` for a text that names no matter of its own
    candidates: the best sessions, best first
    """

    session_id: str | None
    status: SessionStatus | None
    score: float
    threshold: float
    method: str
    candidates: list[SessionScore]


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to sign.

    ttl: ISO 8601 duration after which it is refused, at most a day
    """

    ttl: Annotated[str, Meta(max_length=64)] = "PT1H"


class TokenResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A token of a session, which is sent like an API key and stored nowhere.

    expires_at: the instant from which it is refused
    """

    token: str
    session_id: str
    agent_id: str
    expires_at: str


class SessionExportQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the turns of a page of an export: those after a sequence."""

    after: Position = 0
    limit: SessionPageLimit = 500


class SessionExport(msgspec.Struct, frozen=True, kw_only=True):
    """A page of an export of a session.

    checkpoints: oldest first; only on the first page
    next: the value of `after` for the next page; None on the last page
    """

    session: SessionResponse
    checkpoints: list[CheckpointResponse]
    turns: list[TurnResponse]
    next: int | None


_session = copier(
    Session,
    SessionResponse,
    given=[
        "id",
        "status",
        "idle_at",
        "closed_reason",
        "version",
        "created_at",
        "updated_at",
        "counts",
    ],
)


def session_view(
    entry: Entry, session: Session, counters: SessionCounters, now: str
) -> SessionResponse:
    """The wire form of a session. One whose time is over is closed, also before the job has closed
    it.

    now: the instant of the request, in the stored form
    """
    reason = find_end_reason(session, counters.last_activity_at, now)
    idle_at = None
    if session.status in OPEN and session.idle_timeout is not None:
        idle_at = idle_end(session, counters.last_activity_at)
    return _session(
        session,
        id=entry.id,
        status="closed" if reason else session.status,
        idle_at=idle_at,
        closed_reason=reason or session.closed_reason,
        version=entry.version,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        counts=counts_view(counters),
    )


# Paths with fixed segments come before paths with ids.
SESSION_OPERATIONS: tuple[Operation, ...] = (
    SESSIONS(
        "create_session",
        "POST /sessions",
        "Create a session, which belongs to the caller.",
        body=SessionRequest,
        reply=SessionResponse,
        status=201,
        accepts_idempotency_key=True,
        etag=True,
        location="/api/v1/sessions/{id}",
        shrink="keep less in `state`",
        raises=(ResourceNotFoundError,),
    ),
    SESSIONS(
        "list_sessions",
        "GET /sessions",
        "List the sessions of an agent, newest first.",
        query=SessionQuery,
        reply=SessionListResponse,
    ),
    SESSIONS(
        "match_session",
        "POST /sessions/match",
        "Find the session of a person that a new text continues, if any.",
        body=MatchRequest,
        reply=MatchResponse,
        safe=True,
    ),
    SESSIONS(
        "get_session",
        "GET /sessions/{session_id}",
        "Get a session with its counters.",
        reply=SessionResponse,
    ),
    SESSIONS(
        "update_session",
        "PATCH /sessions/{session_id}",
        "Replace the title, the state, the metadata, limits or parts of the policy.",
        body=SessionChange,
        reply=SessionResponse,
        if_match="optional",
        etag=True,
        shrink="keep less in `state`",
        raises=(SessionQuarantinedError, SessionClosedError, ResourceConflictError),
    ),
    SESSIONS(
        "delete_session",
        "DELETE /sessions/{session_id}",
        "Delete a session with all that it contains.",
    ),
    SESSIONS(
        "set_session_participant",
        "PUT /sessions/{session_id}/participants/{agent_id}",
        "Add an agent to a session, or change its access.",
        body=ParticipantRequest,
        reply=SessionResponse,
        raises=(SessionQuarantinedError,),
    ),
    SESSIONS(
        "remove_session_participant",
        "DELETE /sessions/{session_id}/participants/{agent_id}",
        "Remove an agent from a session, with effect on its next request.",
    ),
    *TURN_OPERATIONS,
    SESSIONS(
        "remove_turns",
        "DELETE /sessions/{session_id}/turns",
        "Remove the turns of a session from a sequence on, or all of them.",
        query=TurnRemovalQuery,
        reply=SessionResponse,
        accepts_idempotency_key=True,
        raises=(SessionQuarantinedError, SessionClosedError, ResourceConflictError),
    ),
    *CHECKPOINT_OPERATIONS,
    SESSIONS(
        "resume_session",
        "POST /sessions/{session_id}/resume",
        "Resume a session from a checkpoint, with the turns that it does not summarize.",
        body=ResumeRequest,
        reply=ResumeResponse,
        raises=(SessionQuarantinedError, SessionClosedError),
    ),
    SESSIONS(
        "fork_session",
        "POST /sessions/{session_id}/fork",
        "Create a session with copies of the turns of another one up to a sequence.",
        body=ForkRequest,
        reply=SessionResponse,
        status=201,
        accepts_idempotency_key=True,
        raises=(SessionQuarantinedError, ResourceConflictError, MemoryCapacityError),
    ),
    SESSIONS(
        "close_session",
        "POST /sessions/{session_id}/close",
        "Close a session; it accepts no more turns.",
        body=CloseRequest,
        reply=SessionResponse,
        raises=(SessionQuarantinedError,),
    ),
    SESSIONS(
        "archive_session",
        "POST /sessions/{session_id}/archive",
        "Archive a session; it is deleted when its retention is over.",
        reply=SessionResponse,
        raises=(SessionQuarantinedError,),
    ),
    SESSIONS(
        "issue_session_token",
        "POST /sessions/{session_id}/token",
        "Sign a token, with which the caller's requests are inside this session.",
        permission=Permission.READ,
        body=TokenRequest,
        reply=TokenResponse,
        raises=(SessionQuarantinedError, SessionClosedError),
    ),
    SESSIONS(
        "export_session",
        "GET /sessions/{session_id}/export",
        "Export a session, its checkpoints and its turns, in pages of turns.",
        query=SessionExportQuery,
        reply=SessionExport,
    ),
)
