"""The record of an operation: one method on one path, and all its properties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from memorywall.kinds.promotions import PROPOSAL
from memorywall.records.errors import (
    AuthenticationError,
    FencedError,
    IdempotencyConflictError,
    KeyUnavailableError,
    MemoryAccessError,
    MemorywallError,
    PreconditionError,
    RateLimitedError,
    ReplyErasedError,
    RequestError,
    ResourceNotFoundError,
    StorageFullError,
    UnavailableError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.records.feature_errors import (
    SessionClosedError,
    SessionQuarantinedError,
    SubjectForgottenError,
)
from memorywall.records.principal import Permission
from memorywall.records.worthiness import DUPLICATE

Media = Literal["json", "lines", "events", "bytes", "text"]
MERGE_PATCH = "application/merge-patch+json"
ANY_VERSION = -1
"""Stands for `If-Match: *`: an entry must exist, with any version."""
_CHANGING = ("POST", "PUT", "PATCH", "DELETE")
ATTACH = (
    "store bulk data as an attachment of an entry (POST /api/v1/memory/{entry_id}/attachments, then"
    " PUT its content) or of an intent (POST /api/v1/intents/{intent_id}/attachments), and keep its"
    " `attachment_id` in the value"
)
_WITH_VALUES = frozenset({"Memory", "Intents", "Graph", "Tasks"})
"""The groups whose operations store values, which may name attachments."""
_GROUPS_BOUND_BY_SUBJECT = frozenset(
    {"Memory", "Facts", "Kinds", "Sessions", "Context", "Claims", "Promotions"}
)
_OF_OTHER_SESSIONS = frozenset({"create_session", "fork_session", "issue_session_token"})
"""Operations whose results would outlast the session of the request."""
_OF_INTENTS = frozenset({"list_intent_tasks", "create_task", "explain_working_memory"})
"""Operations on tasks that show or make what belongs to an intent, and its log."""


class UserOfRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A query or a body that may name the people that the request is bound to."""

    user: Annotated[
        str | None,
        msgspec.Meta(
            description="The person that the request is bound to, as `X-User` does; several people"
            " are separated by commas."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One method on one path.

        name: the name of its bound function, its OpenAPI operationId and its client method
    method, path: HTTP method and path; the path contains `{parameters}`
    group: the heading in the reference
    summary: one sentence for the reference
    source: the document that defines the contract, such as "RFC-0015 section 3"
    permission: the permission that the key must have, besides the rule of the tier; default: none
    public: whether the operation works without a key; default: false
    query: the struct of the query parameters, None for none
    body: the struct of the body, None for none
    content: the format of the body; default: "json"
    reply: the struct of the response
    status: the status of a success; default: 200
    empty: whether a success without a result is 204; default: false
    media: the format of the response; "events" is also available as JSON; default: "json"
    if_match: whether If-Match is required, optional or not accepted; "any" is optional and may be
        `*`; default: "none"
    if_none_match: whether the operation accepts `If-None-Match: *`; default: false
    merge_patch: the struct of a body of the type application/merge-patch+json (RFC 7396), None if
        the operation does not accept that type
    created: the status of a result that the operation has created, which has version 1; None if
        it does not differ from `status`
    defers: whether the operation may store a proposal in place of an entry, with the status 202
    recognizes: whether the reply may be an entry that was there, with the status 200
    safe: whether the operation changes nothing although its method is POST (RFC 9110)
    accepts_idempotency_key: whether the operation accepts an Idempotency-Key
    etag: whether the response has an ETag. A read with an ETag accepts If-None-Match.
    location: the path of the created resource, with `{id}`, for the Location header
    raises: the errors of the operation besides those that every operation may raise
    shrink: what to do about a body above the limit; default: what the group says
    """

    name: str
    method: str
    path: str
    group: str
    summary: str
    source: str
    permission: Permission | None = None
    public: bool = False
    query: type | None = None
    body: type | None = None
    content: Literal["json", "bytes"] = "json"
    reply: Any = None
    status: int = 200
    empty: bool = False
    media: Media = "json"
    if_match: Literal["required", "optional", "any", "none"] = "none"
    if_none_match: bool = False
    merge_patch: type | None = None
    created: int | None = None
    defers: bool = False
    recognizes: bool = False
    safe: bool = False
    accepts_idempotency_key: bool = False
    etag: bool = False
    location: str | None = None
    raises: tuple[type[MemorywallError], ...] = ()
    shrink: str | None = None

    def status_of(self, result: Any) -> int:
        """The status of a success with this result."""
        if self.defers and result.kind == PROPOSAL.name:
            return HTTPStatus.ACCEPTED.value
        if self.recognizes and result.worthiness and result.worthiness.rule == DUPLICATE:
            return HTTPStatus.OK.value
        if self.created is not None and result.version == 1:
            return self.created
        return self.status

    @property
    def is_conditional(self) -> bool:
        """Whether a request with a current ETag as If-None-Match gets 304 (RFC 9110)."""
        return self.etag and self.method == "GET"

    @property
    def changes(self) -> bool:
        """Whether the operation may change the store."""
        return self.method in _CHANGING and not self.safe

    @property
    def reads_subject(self) -> bool:
        """Whether a request that is bound to a subject may call the operation."""
        if self.group in _GROUPS_BOUND_BY_SUBJECT or self.name in ("whoami", "list_agent_memory"):
            return True
        # What belongs to an entry is decided by the entry, which names its subjects.
        return "entry_id" in self.path_parameters

    @property
    def names_user(self) -> str:
        """The part of a request, `query` or `body`, that may name the people that the request is
        bound to; "" for none."""
        for part in ("query", "body"):
            kind = getattr(self, part)
            if isinstance(kind, type) and issubclass(kind, UserOfRequest):
                return part
        return ""

    @property
    def reads_session(self) -> bool:
        """Whether a request inside a session may call the operation."""
        if self.group == "Tasks":
            return self.name not in _OF_INTENTS
        return self.reads_subject and self.name not in _OF_OTHER_SESSIONS

    @property
    def fenced(self) -> bool:
        """Whether the operation accepts a Fencing-Token; true if it may change the store."""
        return not self.public and self.changes

    @property
    def stores(self) -> bool:
        """Whether the operation accepts X-Said-At; true if it may store something. A deletion
        stores nothing."""
        return self.fenced and self.method != "DELETE"

    @property
    def is_json(self) -> bool:
        """Whether the request and the response are each one JSON text."""
        answers = self.media == "json" or (self.media == "events" and self.reply is not None)
        return answers and self.content == "json"

    @property
    def size_hint(self) -> str:
        """What to do about a body above the limit, for the message; "" for the file itself."""
        if self.content != "json":
            return ""
        has_values = self.changes and self.group in _WITH_VALUES
        return self.shrink or (ATTACH if has_values else "shorten it")

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """The names of the parameters in its path, in order."""
        names = (piece.partition("}")[0] for piece in self.path.split("{")[1:])
        return tuple(name.removesuffix(":path") for name in names)

    @property
    def errors(self) -> tuple[type[MemorywallError], ...]:
        """Every error that the operation may raise."""
        always, *others = (one.errors for one in COMMON_ERRORS if one.concerns(self))
        return tuple(dict.fromkeys(chain(always, self.raises, *others)))


class CommonErrors(NamedTuple):
    """Errors that several operations may raise.

    of: the operations, for the reference
    concerns: whether an operation is one of them
    """

    of: str
    concerns: Callable[[Operation], bool]
    errors: tuple[type[MemorywallError], ...]


COMMON_ERRORS = (
    CommonErrors(
        "all",
        lambda _: True,
        (RequestError, UnavailableError, KeyUnavailableError),
    ),
    CommonErrors(
        "that need a key",
        lambda one: not one.public,
        (AuthenticationError, MemoryAccessError, ValidationError, RateLimitedError),
    ),
    CommonErrors(
        "with `X-Session-ID`",
        lambda one: one.reads_session,
        (ResourceNotFoundError, SessionClosedError, SessionQuarantinedError),
    ),
    CommonErrors("with `Fencing-Token`", lambda one: one.changes, (StorageFullError,)),
    CommonErrors(
        "with a body", lambda one: one.body is not None, (ValidationError, ValueTooLargeError)
    ),
    CommonErrors(
        "with `Idempotency-Key`",
        lambda one: one.accepts_idempotency_key,
        (IdempotencyConflictError, ReplyErasedError),
    ),
    CommonErrors("with `If-Match`", lambda one: one.if_match != "none", (PreconditionError,)),
    CommonErrors("with `Fencing-Token`", lambda one: one.fenced, (FencedError,)),
    CommonErrors("with `X-Said-At`", lambda one: one.stores, (SubjectForgottenError,)),
)
"""The first one concerns every operation."""
