"""Converts decoded parameters to an operation call, for surfaces other than the HTTP routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memorywall.records.clock import check_instant
from memorywall.records.principal import Principal
from memorywall.server.dispatch import fingerprint_of, largest_body, parse_fencing_token
from memorywall.server.request_decoder import (
    NoParameters,
    Oversized,
    bind_named_user,
    body_type,
    convert_body,
    convert_query,
    parse_if_match,
    parse_if_none_match,
)
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.requests.validation import check_name
from memorywall.settings import Settings
from memorywall.wire.operation import Operation
from memorywall.wire.results import encode


def make_call(
    operation: Operation,
    principal: Principal,
    settings: Settings,
    *,
    path: Mapping[str, str],
    query: Mapping[str, Any],
    body: Any = None,
    if_match: int | str | None = None,
    if_none_match: str | None = None,
    media_type: str | None = None,
    fencing_token: int | str | None = None,
    idempotency_key: str | None = None,
    subject: str | None = None,
    session: str | None = None,
    said_at: str | None = None,
) -> OperationCall:
    """Returns a call with its query and body as structs of the table.

    path: the path parameters, by name
    query, body: values as decoded from JSON text; bytes for operations with a binary body
    if_match, if_none_match, media_type, fencing_token, idempotency_key, subject, session, said_at:
        the values of the headers, or None

    Raises the errors of the server for such a request.
    """
    if fencing_token is not None and operation.fenced:
        token = parse_fencing_token(str(fencing_token).encode())
        principal = replace(principal, fencing_token=token)
    if said_at is not None and operation.stores:
        principal = replace(principal, said_at=check_instant("X-Said-At", said_at))
    asked: Any = None
    if operation.query is not None or query:
        asked = convert_query(query, operation.query or NoParameters)
    version = None
    if operation.if_match != "none":
        text = None if if_match is None else str(if_match)
        version = parse_if_match(operation, text)
    absent = operation.if_none_match and parse_if_none_match(if_none_match)
    known = if_none_match if operation.is_conditional else None
    key = None
    if idempotency_key is not None and operation.accepts_idempotency_key:
        key = check_name("Idempotency-Key", idempotency_key)
    given: Any = None
    content = b""
    if operation.body is not None:
        content = encode(body) if operation.content == "json" else bytes(body)
        largest = largest_body(operation, settings)
        if len(content) > largest:
            hint = f"; {operation.size_hint}" if operation.size_hint else ""
            raise Oversized(f"the body may have at most {largest} bytes{hint}")
        if operation.content == "json":
            given = convert_body(body, body_type(operation, media_type))
    call = OperationCall(
        operation=operation,
        principal=principal,
        path=path,
        query=asked,
        body=given,
        content=content,
        if_match=version,
        if_none_match=absent,
        known=known,
        idempotency_key=key,
        subject=None if operation.public else subject,
        session=None if operation.public else session,
    )
    bind_named_user(call)
    if key is not None:
        call.fingerprint = fingerprint_of(call)
    return call
