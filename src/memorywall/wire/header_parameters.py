"""The header parameters of operations in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memorywall.records.principal import Permission
from memorywall.wire.field_texts import PARAMETER_EXAMPLES
from memorywall.wire.operation import Operation


def _header(name: str, text: str, *, required: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": required,
        "description": text,
        "schema": {"type": "string"},
    }


AGENT = _header(
    "X-Agent-ID",
    "The agent that the request acts for: the key's own, or any agent"
    f" if the key has `{Permission.ACT_AS}`.",
)
USER = _header(
    "X-User",
    "The people the request is bound to, separated by commas, at most 16: it sees nothing about"
    " anybody else, and what it writes is about them. `X-Subject` is another name of this header.",
)
SESSION = _header(
    "X-Session-ID",
    "The session the request is bound to: it sees nothing of other sessions, and what"
    " it writes belongs to this one.",
)
SAID_AT = _header(
    "X-Said-At",
    "When what the request stores was said, an RFC 3339 instant by the client's clock. The request"
    " is refused with `SUBJECT_FORGOTTEN` if a person that it is bound to, or that an entry it"
    " stores is about, was forgotten at that instant or later.",
)


def with_examples(parameters: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parameters, each with the example of its name."""
    return [{**one, "example": PARAMETER_EXAMPLES[one["name"]]} for one in parameters]


def header_parameters(operation: Operation) -> list[dict[str, Any]]:
    """The headers that an operation accepts."""
    parameters: list[dict[str, Any]] = []
    if not operation.public:
        parameters.append(AGENT)
    if operation.reads_subject:
        parameters.append(USER)
    if operation.reads_session:
        parameters.append(SESSION)
    if operation.stores:
        parameters.append(SAID_AT)
    if operation.if_match != "none":
        required = operation.if_match == "required"
        parameters.append(_header("If-Match", "The current version.", required=required))
    if operation.if_none_match:
        parameters.append(_header("If-None-Match", "`*` to create and never to replace."))
    if operation.is_conditional:
        text = "ETags that the client has; a current one gets 304 without a body."
        parameters.append(_header("If-None-Match", text))
    if operation.fenced:
        parameters.append(
            _header(
                "Fencing-Token",
                "The fencing token of the lease or claim of this request. The request is refused"
                " if the lease is not live.",
            )
        )
    if operation.accepts_idempotency_key:
        parameters.append(
            _header("Idempotency-Key", "The same key returns the first response for 24 hours.")
        )
    if operation.media == "events":
        parameters.append(
            _header(
                "Last-Event-ID", "The id of the last received event; the stream continues after it."
            )
        )
    return parameters
