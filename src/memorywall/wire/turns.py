"""Turns, checkpoints and saved states of sessions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.kinds.response_items import as_message, with_extra
from memorywall.kinds.sessions import (
    Checkpoint,
    CheckpointTrigger,
    Metadata,
    MovedPart,
    Role,
    SummaryQuality,
    ToolCall,
    Turn,
)
from memorywall.records.copier import copier
from memorywall.records.entry import Entry
from memorywall.records.errors import (
    MemoryCapacityError,
    ResourceConflictError,
)
from memorywall.records.feature_errors import SessionClosedError, SessionQuarantinedError
from memorywall.records.session import SessionCounters, context_pollution
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

Position = Annotated[
    int, Meta(ge=0, le=2**31, description="A sequence; default: 0, the beginning.")
]
TurnNumber = Annotated[int, Meta(ge=1, le=2**31)]
Unstored = Annotated[
    Any, Meta(description="Of a reply as its provider returns it; accepted and not stored.")
]
MustBeNull = Annotated[Any, Meta(description="Must be null; send `tool_calls` or text.")]
Extra = Annotated[
    dict[str, Any],
    Meta(
        max_length=32, description="Of an assistant's turn: what else its provider sent, by name."
    ),
]
SessionPageLimit = Annotated[int, Meta(ge=1, le=1_000)]


class SessionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of a session; see `SessionCounters`.

    last_checkpoint: the number of the newest checkpoint, 0 before the first one. Numbers are not
        used again, also after the checkpoints were removed.
    context_pollution: the share of the tokens of entries in the session's contexts that feedback
        did not name as used; null without feedback
    """

    last_sequence: int
    turn_count: int
    token_usage: int
    last_activity_at: str
    summarized_through: int
    last_checkpoint: int
    context_pollution: float | None = None


class FunctionCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The function of a call, as OpenAI describes it.

    arguments: an object, or the JSON text of one; another text or a list, as a model may return it,
        is kept as text
    """

    name: str | None = None
    arguments: dict[str, Any] | list[Any] | str | None = None


class ToolCallRequest(FunctionCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call of a tool: `name` and `arguments`, or `function` as OpenAI has it.

    id: the id by which the turn with the result names the call
    """

    id: str
    type: Literal["function"] = "function"
    function: Annotated[
        FunctionCall | None, Meta(description="The name and the arguments, as OpenAI has them.")
    ] = None


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new turn, or a message as OpenAI or Anthropic return and take it.

    Items of OpenAI's Responses of the types `function_call`, `function_call_output` and
    `reasoning`, which have no role, are accepted as well.

    role: `developer` is stored as `system`
    content: text, or content parts as model providers define them; null only in an assistant turn.
        Of Anthropic's parts, `tool_use` becomes a call, and each `tool_result` a turn of its own.
    name: the name of the speaker or of the tool
    tool_calls: the calls of an assistant turn
    tool_call_id: of a tool turn, the call whose result it holds
    is_error: of a tool turn, whether the call failed
    client_id: an id that the caller chooses; a repeat with the same content returns the turn that
        has it already
    source: the URI of the content's source; `mem:ID` for an entry
    trusted: false for content of documents and tools; its instructions are data
    valid_for: the time after which the content counts as stale (ISO 8601 duration)
    said_at: the instant at which it was said, by which searches date it; default: that of storing
    metadata: texts and numbers by name, at most 16
    refusal: what OpenAI returns instead of a content
    extra: what else a provider sent, by name, at most 32 fields. Fields of an assistant's turn that
        are not listed here, such as `reasoning_content`, are kept there; those of another turn are
        refused.
    annotations, audio, function_call, id, type, model, container, stop_reason, stop_sequence,
        status, usage: of a reply as its provider returns it; not stored. `audio` and
        `function_call` must be null.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: tuple[ToolCallRequest, ...] | None = ()
    tool_call_id: str | None = None
    is_error: bool = False
    client_id: str | None = None
    source: str | None = None
    trusted: bool = True
    valid_for: str | None = None
    said_at: str | None = None
    metadata: Metadata = {}
    refusal: str | None = None
    extra: Extra = {}
    annotations: Unstored = None
    audio: MustBeNull = None
    function_call: MustBeNull = None
    id: Unstored = None
    type: Literal["message"] | None = None
    model: Unstored = None
    container: Unstored = None
    stop_reason: Unstored = None
    stop_sequence: Unstored = None
    status: Unstored = None
    usage: Unstored = None


class TurnsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Turns to add in this order, all or none."""

    turns: Annotated[list[TurnRequest], Meta(min_length=1, max_length=100)]

    @staticmethod
    def collect_unknown(body: Any) -> Any:
        """Returns a decoded body with items of OpenAI's Responses as messages, and with the unknown
        fields of assistant turns in their `extra`."""
        turns = body.get("turns") if isinstance(body, dict) else None
        if not isinstance(turns, list):
            return body
        return {**body, "turns": [with_extra(as_message(one), _TURN_FIELDS) for one in turns]}


_TURN_FIELDS = frozenset(TurnRequest.__struct_fields__)


class TurnResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A turn.

    id: the id of its entry
    sequence: its position in the session, from 1
    valid_until: the instant from which the content counts as stale
    said_at: when it was said, if the request told it; absent otherwise
    tokens: the estimated number of tokens
    personal_data: names of the kinds of personal data that were found
    extra: what else the provider sent with an assistant's message; absent for nothing
    attachments: the parts that are in attachments, because the turn is larger than an entry; a text
        with the beginning of the part and its `uri` stands in its place
    """

    id: str
    sequence: int
    role: Role
    content: str | list[dict[str, Any]]
    author: str
    created_at: str
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    client_id: str | None = None
    source: str | None = None
    trusted: bool = True
    valid_until: str | None = None
    said_at: str | UnsetType = UNSET
    tokens: int = 0
    personal_data: tuple[str, ...] = ()
    metadata: Metadata = {}
    extra: dict[str, Any] | UnsetType = UNSET
    attachments: tuple[MovedPart, ...] | UnsetType = UNSET


class TurnsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Turns that were added or were there already, in the order of the request."""

    turns: list[TurnResponse]
    counts: SessionCounts


class TurnQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects turns.

    after, before_sequence: only turns after, and before, this sequence
    newest_first: the reverse order
    whole: whether parts in attachments stand in their places again; with a `limit` of at most 10
    """

    after: Position = 0
    before_sequence: TurnNumber | None = None
    limit: SessionPageLimit = 100
    newest_first: bool = False
    whole: Annotated[
        bool, Meta(description="Whether parts in attachments stand in their places again.")
    ] = False


class TurnListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Turns in the wanted order."""

    turns: list[TurnResponse]


class TurnRemovalQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the turns to remove: those from `first` on; default: all.

    last: the sequence that the last turn must have, so that no turn is removed that was added
        meanwhile; default: any
    """

    first: TurnNumber = 1
    last: Annotated[
        TurnNumber | None,
        Meta(description="The sequence that the last turn must have; default: any."),
    ] = None


class CheckpointRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A checkpoint to make.

    trigger: why; after `user_request` and `shutdown` the session is `checkpointed` until its next
        turn
    working: the serialized working memory; null for the caller's working entries of the session
    state: the new state of the session; absent leaves it
    """

    trigger: CheckpointTrigger = "user_request"
    working: list[dict[str, Any]] | None = None
    state: dict[str, Any] | None = None


class CheckpointResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint.

    number: counts the checkpoints of the session from 1
    summary: the text of the newest stored summary; if there was none yet, rules summarize the turns
        when the checkpoint is read
    quality: how much of what it must keep the summary has; null without a summary
    summarized_through: the last turn that the newest stored summary covers, 0 for none; `resume`
        returns the turns after it
    first, last: the turns since the checkpoint before it; null when there are none
    """

    id: str
    number: int
    trigger: CheckpointTrigger
    summary: str
    quality: SummaryQuality | None
    summarized_through: int
    first: int | None
    last: int | None
    working: list[dict[str, Any]]
    state: dict[str, Any]
    turn_count: int
    token_usage: int
    created_at: str


class CheckpointListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoints of a session, newest first."""

    checkpoints: list[CheckpointResponse]


class SavedStateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state of a framework to save.

    data: the bytes as base64, at most what an attachment takes
    parent: the name of the state that it follows; None for none
    metadata: free JSON
    """

    data: Annotated[bytes, Meta(description="The bytes, as base64.")]
    parent: Annotated[
        str | None, Meta(description="The name of the state that it follows; default: none.")
    ] = None
    metadata: dict[str, Any] = {}


class SavedStateResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A saved state.

    id: the id of its entry
    name: unique in its session
    parent: the name of the state that it follows; null for none
    size: the number of bytes
    data: the bytes as base64; null where many are listed without `with_data`, and in the reply to a
        request that sent them
    """

    id: str
    name: str
    parent: str | None
    metadata: dict[str, Any]
    size: int
    created_at: str
    data: bytes | None = None


class SavedStateQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects saved states by their names.

    after_name, before_name: only names after, and before, this one
    with_data: whether the states have their data; a page then ends after about a MiB of it
    """

    after_name: Annotated[str, Meta(description="Only states with names after this one.")] = ""
    before_name: Annotated[
        str | None, Meta(description="Only states with names before this one.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 50
    with_data: Annotated[bool, Meta(description="Whether the states have their data.")] = False


class SavedStateListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Saved states, in the reverse order of their names.

    next: the value of `before_name` for the next page; None after the last page
    """

    saved_states: list[SavedStateResponse]
    next: str | None


counts_view = copier(
    SessionCounters,
    SessionCounts,
    last_checkpoint="checkpoints",
    context_pollution=lambda one: context_pollution(one.context_tokens, one.used_tokens),
)
"""The wire form of counters."""

_turn = copier(
    Turn,
    TurnResponse,
    given=["id", "created_at"],
    extra=lambda turn: turn.extra or UNSET,
    attachments=lambda turn: turn.moved or UNSET,
    said_at=lambda turn: turn.said_at or UNSET,
)
_checkpoint = copier(Checkpoint, CheckpointResponse, given=["id", "created_at"])


def turn_view(entry: Entry, turn: Turn) -> TurnResponse:
    """The wire form of a turn."""
    return _turn(turn, id=entry.id, created_at=entry.created_at)


def checkpoint_view(entry: Entry, checkpoint: Checkpoint) -> CheckpointResponse:
    """The wire form of a checkpoint."""
    return _checkpoint(checkpoint, id=entry.id, created_at=entry.created_at)


SESSIONS = OperationGroup(name="Sessions", source="memory wall 11.3")

TURN_OPERATIONS: tuple[Operation, ...] = (
    SESSIONS(
        "add_turns",
        "POST /sessions/{session_id}/turns",
        "Add up to 100 turns to a session, all or none.",
        body=TurnsRequest,
        reply=TurnsResponse,
        status=201,
        accepts_idempotency_key=True,
        shrink="send fewer turns at once, or keep content elsewhere and name it in `source`",
        raises=(
            SessionQuarantinedError,
            SessionClosedError,
            ResourceConflictError,
            MemoryCapacityError,
        ),
    ),
    SESSIONS(
        "list_turns",
        "GET /sessions/{session_id}/turns",
        "List turns of a session in the order of their sequence.",
        query=TurnQuery,
        reply=TurnListResponse,
    ),
)

CHECKPOINT_OPERATIONS: tuple[Operation, ...] = (
    SESSIONS(
        "create_checkpoint",
        "POST /sessions/{session_id}/checkpoints",
        "Make a checkpoint of a session, with a summary of its turns.",
        body=CheckpointRequest,
        reply=CheckpointResponse,
        status=201,
        accepts_idempotency_key=True,
        shrink="keep less in `working` and `state`",
        raises=(SessionQuarantinedError, SessionClosedError),
    ),
    SESSIONS(
        "list_checkpoints",
        "GET /sessions/{session_id}/checkpoints",
        "List the checkpoints of a session, newest first.",
        reply=CheckpointListResponse,
    ),
    SESSIONS(
        "put_saved_state",
        "PUT /sessions/{session_id}/saved-states/{name}",
        "Save a state of a framework under a name, or replace it.",
        body=SavedStateRequest,
        reply=SavedStateResponse,
        if_none_match=True,
        shrink="keep less in `data`",
        raises=(SessionQuarantinedError, SessionClosedError, ResourceConflictError),
    ),
    SESSIONS(
        "get_saved_state",
        "GET /sessions/{session_id}/saved-states/{name}",
        "Get a saved state with its data.",
        reply=SavedStateResponse,
    ),
    SESSIONS(
        "list_saved_states",
        "GET /sessions/{session_id}/saved-states",
        "List the saved states of a session, last name first.",
        query=SavedStateQuery,
        reply=SavedStateListResponse,
    ),
    SESSIONS(
        "delete_saved_state",
        "DELETE /sessions/{session_id}/saved-states/{name}",
        "Delete a saved state.",
    ),
)
