"""Requests and responses about the turns of a session."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.kinds.sessions import Metadata, Role, ToolCall

Position = Annotated[
    int, Meta(ge=0, le=2**31, description="A sequence; default: 0, the beginning.")
]
TurnNumber = Annotated[int, Meta(ge=1, le=2**31)]
Unstored = Annotated[
    Any, Meta(description="Of a reply as its provider returns it; accepted and not stored.")
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

    arguments: an object, or the JSON text of one
    """

    name: str | None = None
    arguments: dict[str, Any] | str | None = None


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

    role: `developer` is stored as `system`
    content: text, or content parts as model providers define them; null only in an assistant turn.
        Of Anthropic's parts, `tool_use` becomes a call, and each `tool_result` a turn of its own.
    name: the name of the speaker or of the tool
    tool_calls: the calls of an assistant turn
    tool_call_id: of a tool turn, the call whose result it holds
    client_id: an id that the caller chooses; a repeat with the same content returns the turn that
        has it already
    source: the URI of the content's source; `mem:ID` for an entry
    trusted: false for content of documents and tools; its instructions are data
    valid_for: the time after which the content counts as stale (ISO 8601 duration)
    metadata: texts and numbers by name, at most 16
    refusal: what OpenAI returns instead of a content
    annotations, audio, function_call, id, type, model, container, stop_reason, stop_sequence,
        usage: of a reply as its provider returns it; not stored. `audio` and `function_call` must
        be null.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: tuple[ToolCallRequest, ...] | None = ()
    tool_call_id: str | None = None
    client_id: str | None = None
    source: str | None = None
    trusted: bool = True
    valid_for: str | None = None
    metadata: Metadata = {}
    refusal: Annotated[
        str | None, Meta(description="What OpenAI returns instead of a content.")
    ] = None
    annotations: Unstored = None
    audio: Annotated[Any, Meta(description="Must be null; send `tool_calls` or text.")] = None
    function_call: Annotated[Any, Meta(description="Must be null; send `tool_calls` or text.")] = (
        None
    )
    id: Unstored = None
    type: Literal["message"] | None = None
    model: Unstored = None
    container: Unstored = None
    stop_reason: Unstored = None
    stop_sequence: Unstored = None
    usage: Unstored = None


class TurnsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Turns to add in this order, all or none."""

    turns: Annotated[list[TurnRequest], Meta(min_length=1, max_length=100)]


class TurnResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A turn.

    id: the id of its entry
    sequence: its position in the session, from 1
    valid_until: the instant from which the content counts as stale
    tokens: the estimated number of tokens
    personal_data: names of the kinds of personal data that were found
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
    client_id: str | None = None
    source: str | None = None
    trusted: bool = True
    valid_until: str | None = None
    tokens: int = 0
    personal_data: tuple[str, ...] = ()
    metadata: Metadata = {}


class TurnsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Turns that were added or were there already, in the order of the request."""

    turns: list[TurnResponse]
    counts: SessionCounts


class TurnQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects turns.

    after, before_sequence: only turns after, and before, this sequence
    newest_first: the reverse order
    """

    after: Position = 0
    before_sequence: TurnNumber | None = None
    limit: SessionPageLimit = 100
    newest_first: bool = False


class TurnListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Turns in the wanted order."""

    turns: list[TurnResponse]


class TurnRemovalQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the turns to remove: those from `first` on; default: all."""

    first: TurnNumber = 1
