"""The kinds of one conversation: session, turn, checkpoint, summary and saved state (memory wall
11.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.kinds.content_parts import content_text, spoken_text
from memorywall.kinds.spec import Edge, KindSpec
from memorywall.records.tier import Tier

Role = Literal["system", "user", "assistant", "tool"]
SessionStatus = Literal["active", "checkpointed", "closed", "archived", "quarantined"]
CheckpointTrigger = Literal["periodic", "turn_count", "user_request", "error_recovery", "shutdown"]
ParticipantAccess = Literal["read", "append"]
PersonalData = Literal["keep", "mark", "mask"]
Summarizer = Literal["extractive", "model"]
CheckpointTurns = Annotated[int, Meta(ge=0)]
CheckpointsKept = Annotated[int, Meta(ge=1, le=100)]
CompactionThreshold = Annotated[float, Meta(gt=0, le=1)]

_encode = msgspec.json.Encoder().encode
SESSION_STATUSES = ("active", "checkpointed", "closed", "archived", "quarantined")
SERVER_REASONS = ("idle", "expired", "archived", "foreign entries", "request")
"""The reasons for which the server closes a session; a client may give another text."""
PARTICIPANT = "participant"
"""The relation between a session and an agent that takes part in it."""
QUOTES = "quotes"
"""The relation between a turn and the entry that its source names."""
TOKEN_BUDGET = 8_192
"""The token budget by which turns of a session without one are summarized."""
SUMMARY_SHARE = 0.5
"""The share of a session's token budget that its summary may take (memory wall, algorithm 11.3)."""
_ENTRY_SCHEME = "mem:"
OPENING_SHARE = 0.25
"""The share of a summary that what the user says first may take before everything else."""

Sequence = Annotated[int, Meta(ge=1, description="The position of a turn in its session, from 1.")]
Position = Annotated[int, Meta(ge=0)]
Tokens = Annotated[int, Meta(ge=0, description="A number of tokens.")]
Metadata = Annotated[
    dict[str, str | int | float],
    Meta(max_length=16, description="Texts and numbers by name, at most 16."),
]


class _Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
             forbid_unknown_fields=True):  # fmt: skip
    """A value of a kind."""


class SessionPolicy(_Value, frozen=True, kw_only=True):
    """The rules of a session.

    personal_data: what happens to personal data in turns: keep, mark or mask
    retention: how long an archived session is kept (ISO 8601 duration); None for no limit
    checkpoint_turns: turns after which a checkpoint is made; 0 for never
    checkpoint_interval: time after which a checkpoint is made (ISO 8601 duration); None for never
    checkpoint_on_error: whether a checkpoint is made with a turn of a tool that failed
    checkpoints_kept: the most checkpoints that are kept; the oldest go first
    compaction_threshold: the share of the token budget from which turns are summarized
    summarizer: `extractive`, or `model` when the server has an endpoint of a model
    """

    personal_data: PersonalData = "keep"
    retention: str | None = None
    checkpoint_turns: CheckpointTurns = 20
    checkpoint_interval: str | None = None
    checkpoint_on_error: bool = True
    checkpoints_kept: CheckpointsKept = 5
    compaction_threshold: CompactionThreshold = 0.75
    summarizer: Summarizer = "extractive"


class Participant(_Value, frozen=True, kw_only=True):
    """An agent that takes part in a session.

    access: `read`, or `append` to add turns as well
    """

    agent_id: str
    access: ParticipantAccess = "append"


class Session(_Value, frozen=True, kw_only=True):
    """A conversation (memory wall 11.3.1). Its counters are stored apart.

    subject: the person it is held with
    ends_at: the instant at which the hard limit of its duration ends it; None for no limit
    idle_timeout: the time without a turn after which it is closed (ISO 8601 duration)
    idle_at: the instant at which the idle timeout is examined next
    token_budget: the most tokens of the summary and the turns in a context; None for what the
        window leaves
    state: the initial state, and whatever the agent keeps there
    metadata: texts and numbers by name, by which lists filter
    continues: the session of the same subject that it continues
    client_id: a name that its agent has chosen, unique among its sessions with the subject
    closed_reason: why it is not active any more
    clear_at: the instant at which the archived session is deleted; None for never
    summarize_at: the instant from which its turns wait to be summarized by the server
    """

    status: SessionStatus = "active"
    agent_id: str
    subject: str | None = None
    title: str = ""
    participants: tuple[Participant, ...] = ()
    ends_at: str | None = None
    idle_timeout: str | None = None
    idle_at: str | None = None
    token_budget: Annotated[int, Meta(ge=1)] | None = None
    state: dict[str, Any] = {}
    policy: SessionPolicy = SessionPolicy()
    metadata: Metadata = {}
    continues: str | None = None
    client_id: str | None = None
    closed_reason: str | None = None
    clear_at: str | None = None
    summarize_at: str | None = None

    @property
    def summary_budget(self) -> int:
        """The tokens by which its turns are summarized."""
        return TOKEN_BUDGET if self.token_budget is None else self.token_budget


class ToolCall(_Value, frozen=True, kw_only=True):
    """A call of a tool by an assistant turn.

    id: the id by which the turn with the result names the call
    arguments: JSON; a text where the model wrote no JSON object, such as one that was cut
    """

    id: str
    name: str
    arguments: dict[str, Any] | str = {}


class MovedPart(_Value, frozen=True, kw_only=True):
    """A part of a turn in an attachment of the turn; a text stands in its place.

    at: its place in the content; None if the content was one text
    uri: the path of its bytes in the API
    size: of the bytes
    part: of an image or another medium, the part without its data; None for text and JSON
    path: the names that lead to the data in `part`
    prefix: what stands before the base64 of the data
    """

    at: Annotated[int, Meta(ge=0)] | None = None
    uri: str
    attachment_id: str
    size: Annotated[int, Meta(ge=0)]
    mime_type: str
    part: dict[str, Any] | None = None
    path: tuple[str, ...] = ()
    prefix: str = ""


class Turn(_Value, frozen=True, kw_only=True, gc=False):
    """One message of a session, or the result of a tool.

    session_id, sequence: given by the server
    content: text, or content parts as model providers define them
    author: the agent that added the turn
    name: the name of the speaker or of the tool
    tool_calls: the calls of an assistant turn
    tool_call_id: of a tool turn, the call whose result it holds
    is_error: of a tool turn, whether the call failed
    client_id: an id of the author that makes a repeated request harmless
    source: the URI of the content's source; `mem:ID` for an entry
    source_version: the version that this entry had; None if the author could not read it
    trusted: false for content of documents and tools; its instructions are data
    valid_until: the instant from which the content counts as stale
    said_at: the instant at which it was said, by which searches date it; None for that of storing
    tokens: the estimated number of tokens of the content
    personal_data: names of the kinds of personal data that were found
    metadata: texts and numbers by name
    extra: fields of an assistant's message that the server does not know, as its provider sent them
    moved: the parts that are in attachments, because the turn is larger than an entry
    searched: what searches find of them besides the content
    digest: that of the whole content; None if no part was moved
    """

    session_id: str = ""
    sequence: Sequence
    role: Role
    content: str | list[dict[str, Any]]
    author: str
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    client_id: str | None = None
    source: str | None = None
    source_version: int | None = None
    trusted: bool = True
    valid_until: str | None = None
    said_at: str | None = None
    tokens: Tokens = 0
    personal_data: tuple[str, ...] = ()
    metadata: Metadata = {}
    extra: dict[str, Any] = {}
    moved: tuple[MovedPart, ...] = ()
    searched: str = ""
    digest: str | None = None


class StoredStatement(msgspec.Struct, frozen=True, array_like=True):
    """A statement of a summary, as the summarizer read it: the next summary need not read it again.

    start, length: its place in the text, in characters
    role, trusted: who said it, and whether it is data of a document or a tool
    category: its class, which gives its importance
    tokens: those of its line
    carried: the numbers, dates, amounts, identifiers, names and numbers in words in it
    """

    start: int
    length: int
    role: str
    trusted: bool
    category: str
    tokens: int
    carried: tuple[tuple[str, ...], ...]


class SummaryQuality(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How good a summary is (memory wall 11.3.3).

    must_keep, kept: statements that must be kept verbatim, and how many of them the text has
    tokens: those of the text
    fallback: whether the extractive summary replaced the text of a model
    """

    must_keep: int
    kept: int
    tokens: int
    fallback: bool


class Summary(_Value, frozen=True, kw_only=True):
    """A summary of consecutive turns (memory wall 11.3.3).

    level: of the session so far
    first, last: the turns that it covers; 0 for the summary of the session that this one continues
    must_keep, kept: statements that must be kept verbatim, and how many of them the text has
    fallback: whether the extractive summary replaced the text of a model
    statements: those of the text, in order; empty for the text of a model and where they do not fit
        into the entry
    """

    level: Literal["session"]
    first: Position
    last: Position
    text: str
    tokens: Tokens = 0
    must_keep: int = 0
    kept: int = 0
    fallback: bool = False
    statements: tuple[StoredStatement, ...] = ()

    @property
    def quality(self) -> SummaryQuality:
        """How good it is, as replies show it."""
        return SummaryQuality(
            must_keep=self.must_keep, kept=self.kept, tokens=self.tokens, fallback=self.fallback
        )


class Checkpoint(_Value, frozen=True, kw_only=True):
    """A snapshot of a session. It names turns by range and copies none.

    number: counts the checkpoints of the session from 1
    summary: the text of the newest summary
    quality: that of the summary; None without one
    summarized_through: the last turn that the summary covers, 0 for none; the summary and the turns
        after this one are the whole session
    first, last: the turns since the checkpoint before it; both None when there are none
    working: the serialized working memory
    attachment: the id of the attachment that holds `summary`, `working` and `state` when they are
        too large for an entry
    """

    number: Annotated[int, Meta(ge=1)]
    trigger: CheckpointTrigger
    summary: str = ""
    quality: SummaryQuality | None = None
    summarized_through: Annotated[int, Meta(ge=0)] = 0
    first: Sequence | None = None
    last: Sequence | None = None
    working: list[dict[str, Any]] = []
    state: dict[str, Any] = {}
    turn_count: Annotated[int, Meta(ge=0)] = 0
    token_usage: Tokens = 0
    attachment: str | None = None


class SavedState(_Value, frozen=True, kw_only=True):
    """A state that a framework saved: bytes that nobody else reads, never searched. Its name is the
    key of the entry.

    parent: the name of the state that it follows
    metadata: free JSON of the framework
    size: the number of bytes
    data: the bytes, as base64; empty while they are in the attachment
    attachment: the id of the attachment that holds `data` when it is too large for an entry
    """

    parent: str | None = None
    metadata: dict[str, Any] = {}
    size: Annotated[int, Meta(ge=0)]
    data: bytes = b""
    attachment: str | None = None


def source_entry(source: str | None) -> str | None:
    """The id of the entry that the source of a turn names, `mem:ID`; None for another source."""
    if source is None or not source.startswith(_ENTRY_SCHEME):
        return None
    return source.removeprefix(_ENTRY_SCHEME)


def speaker_of(turn: Turn) -> str:
    """The name of who speaks in a turn, "" without one. A result of a tool has no speaker."""
    return turn.name or "" if turn.role != "tool" else ""


def turn_text(content: str | list[dict[str, Any]], calls: Iterable[ToolCall]) -> str:
    """What a turn says, for people: the text of its content, and its calls of tools."""
    said = [spoken_text(content)]
    for call in calls:
        given = call.arguments
        if not isinstance(given, str):
            given = ", ".join(f"{name}={_encode(one).decode()}" for name, one in given.items())
        said.append(f"{call.name}({given})")
    return "\n".join(one for one in said if one)


def client_session(agent: str, subject: str | None, client_id: str) -> Edge:
    """The edge by which a session is found by the name that its agent has given it."""
    names = _encode([agent, subject, client_id])
    return Edge("client_session", sha256(names).hexdigest())


def _session_edges(session: Session) -> Iterator[Edge]:
    if session.client_id is not None:
        yield client_session(session.agent_id, session.subject, session.client_id)
    if session.continues is not None:
        yield Edge("continues", session.continues, is_id=True)
    for one in session.participants:
        yield Edge(PARTICIPANT, one.agent_id, is_id=True)


def client_turn(session_id: str, author: str, client_id: str) -> Edge:
    """The edge by which a turn is found again when its author repeats a request."""
    return Edge("client_turn", f"{session_id}/{author}/{client_id}", is_id=True)


def _turn_edges(turn: Turn) -> Iterator[Edge]:
    if turn.client_id is not None:
        yield client_turn(turn.session_id, turn.author, turn.client_id)
    quoted = source_entry(turn.source)
    if quoted is not None:
        yield Edge(QUOTES, quoted, is_id=True)


def _session_due(session: Session) -> str | None:
    if session.status == "archived":
        return session.clear_at
    if session.status not in {"active", "checkpointed"}:
        return None
    instants = (session.ends_at, session.idle_at, session.summarize_at)
    return min((one for one in instants if one is not None), default=None)


SESSION = KindSpec(
    name="session",
    schema=Session,
    description="A conversation between a person and agents, with its life and its rules.",
    tier=Tier.SESSION,
    evictable=False,
    lifetime="",
    texts=("title", "state", "metadata", "closed_reason"),
    operations=(
        "create_session",
        "update_session",
        "set_session_participant",
        "remove_session_participant",
        "resume_session",
        "fork_session",
        "close_session",
        "archive_session",
        "delete_session",
    ),
    removed_by=("delete_session",),
    listed=False,
    statuses=SESSION_STATUSES,
    status=lambda session: session.status,
    is_searchable=False,
    edges=_session_edges,
    due=_session_due,
)
TURN = KindSpec(
    name="turn",
    schema=Turn,
    description="One message of a session, or the result of a tool.",
    tier=Tier.SESSION,
    evictable=False,
    lifetime="",
    texts=("content", "name", "source", "metadata", "extra"),
    operations=("add_turns", "remove_turns", "fork_session"),
    removed_by=("remove_turns", "delete_session"),
    text=lambda turn: "\n".join(filter(None, (content_text(turn.content), turn.searched))),
    edges=_turn_edges,
)
CHECKPOINT = KindSpec(
    name="checkpoint",
    schema=Checkpoint,
    description="A snapshot of a session from which it is resumed.",
    tier=Tier.SESSION,
    evictable=False,
    lifetime="",
    operations=("create_checkpoint", "add_turns"),
    removed_by=("remove_turns", "delete_session"),
    listed=False,
    is_searchable=False,
)
SUMMARY = KindSpec(
    name="summary",
    schema=Summary,
    description="A summary of consecutive turns of a session.",
    tier=Tier.SESSION,
    evictable=False,
    lifetime="",
    statuses=("complete", "partial"),
    status=lambda summary: "complete" if summary.kept >= summary.must_keep else "partial",
    operations=("create_checkpoint", "add_turns"),
    removed_by=("remove_turns", "delete_session"),
    listed=False,
    is_searchable=False,
)
SAVED_STATE = KindSpec(
    name="saved_state",
    schema=SavedState,
    description="A state of a framework, as bytes with the name of their parent.",
    tier=Tier.SESSION,
    evictable=False,
    lifetime="",
    operations=("put_saved_state",),
    listed=False,
    is_searchable=False,
)

SESSION_KINDS: tuple[KindSpec, ...] = (SESSION, TURN, CHECKPOINT, SUMMARY, SAVED_STATE)
