"""One ASGI endpoint per operation: authenticate, decode, run, respond."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from starlette.types import Receive, Scope, Send

from memorywall.records.clock import check_instant
from memorywall.records.errors import (
    AuthenticationError,
    MemoryAccessError,
    MemorywallError,
    RateLimitedError,
    RequestError,
)
from memorywall.records.principal import Principal
from memorywall.server.admission import RequestAdmission
from memorywall.server.exchange import EXCHANGE, Exchange
from memorywall.server.replies import (
    problem_response,
    render_result,
    run_while_wanted,
    send_response,
    stream_while_wanted,
)
from memorywall.server.request_decoder import (
    MOST_DECODED_AT_ONCE,
    Oversized,
    bind_named_user,
    body_type,
    check_path,
    decode_body,
    decode_query,
    empty_query,
    named_people,
    parse_if_match,
    parse_if_none_match,
    refuse_query,
)
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.requests.validation import check_name
from memorywall.service.runner.operation_runner import OperationRunner
from memorywall.settings import Settings
from memorywall.wire.operations import Operation
from memorywall.wire.parameters import field_names
from memorywall.wire.results import HttpResponse, ResultStream, render

_log = logging.getLogger("memorywall.server")
_OPTIONAL = frozenset(
    {
        b"fencing-token",
        b"if-none-match",
        b"x-subject",
        b"x-user",
        b"x-session-id",
        b"x-said-at",
        b"idempotency-key",
    }
)
"""Headers that few requests have, so that the others pay one comparison for all of them."""


def shown_error(
    operation: str, error: Exception, log: logging.Logger, request_id: str | None = None
) -> MemorywallError:
    """Returns the error for the caller. Unexpected errors are logged and returned without
    details.

    request_id: the id of the request for the log, None without HTTP
    """
    identity = {} if request_id is None else {"request_id": request_id}
    if not isinstance(error, MemorywallError):
        extra = {"operation": operation, "error": type(error).__name__, **identity}
        log.error("failed", extra=extra, exc_info=error)
        return MemorywallError("the server failed; the request changed nothing")
    if error.status >= 500:
        log.warning("refused", extra={"operation": operation, "code": error.code, **identity})
    return error


class Authenticator(Protocol):
    """Authenticates requests.

    issuers: the issuers whose tokens are accepted beside API keys
    """

    issuers: tuple[str, ...]

    async def authenticate(self, key: str | None, agent: str | None) -> Principal:
        """The principal of a request. Raises AuthenticationError, MemoryAccessError.

        key: the API key, None without one
        agent: the value of X-Agent-ID, None without one
        """
        ...


@dataclass(frozen=True, slots=True)
class HttpService:
    """The shared services of all endpoints."""

    runner: OperationRunner
    authenticator: Authenticator
    stopping: asyncio.Event
    admission: RequestAdmission

    async def admit(self, operation: Operation, exchange: Exchange) -> Principal:
        """The principal of a request; a public operation has none and reads none.

        Raises RequestError for a repeated header of access, AuthenticationError,
        MemoryAccessError, RateLimitedError.
        """
        if operation.public:
            return cast(Principal, None)
        if exchange.repeated:
            raise RequestError(f"send the header `{exchange.repeated}` once")
        headers = exchange.headers
        agent = header_text(headers, b"x-agent-id") if b"x-agent-id" in headers else None
        try:
            key = headers.get(b"x-api-key")
            text = _bearer_token(headers) if key is None else _decode(b"x-api-key", key)
            principal = await self.authenticator.authenticate(text, agent)
            exchange.principal = principal
            if self.admission.has_rates:
                self.admission.check_rate(principal)
        except (AuthenticationError, MemoryAccessError, RateLimitedError) as error:
            self.runner.service.refusals.note(operation.name, error)
            raise
        return principal

    async def run(self, call: OperationCall) -> Any:
        """Runs a call when its tenant's share of the server allows it.

        Raises RateLimitedError, and the errors of the operation.
        """
        if call.operation.public:
            return await self.runner.run(call)
        admission, tenant = self.admission, call.principal.tenant
        queue = admission.queues.get(tenant)
        # The usual case is written out here, because it is part of every request.
        if queue is None or queue.running >= admission.share:
            queue = await admission.enter(tenant)
        else:
            queue.running += 1
        try:
            return await self.runner.run(call)
        finally:
            if queue.waiting:
                admission.leave(queue)
            else:
                queue.running -= 1


def largest_body(operation: Operation, settings: Settings) -> int:
    """Returns the most bytes of an operation's body."""
    if operation.content == "bytes":
        return settings.attachment_limit
    if operation.name in ("put_saved_state", "add_turns"):
        # Base64 has four characters for three bytes.
        return settings.attachment_limit * 4 // 3 + settings.body_limit
    return settings.batch_body_limit if operation.name == "write_batch" else settings.body_limit


class OperationEndpoint:
    """The ASGI endpoint of one operation."""

    def __init__(self, operation: Operation, service: HttpService) -> None:
        self._operation = operation
        self._service = service
        self._largest = largest_body(operation, service.runner.service.settings)
        self._is_conditional = operation.is_conditional
        self._names_user = operation.names_user
        self._size_hint = f"; {operation.size_hint}" if operation.size_hint else ""
        self._waits = operation.query is not None and "wait" in field_names(operation.query)
        self._empty_query: Any = None if operation.query is None else empty_query(operation.query)
        self._statistics = service.runner.service.requests.of(operation.name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response: HttpResponse | ResultStream
        exchange: Exchange = scope[EXCHANGE]
        exchange.operation, exchange.statistics = self._operation.name, self._statistics
        self._statistics.in_flight += 1
        try:
            call = await self._read(scope, receive, exchange)
            if self._names_user and getattr(call, self._names_user).user is not None:
                bind_named_user(call)
            if self._waits and not call.wants_stream and call.query.wait:
                # A long poll does nothing most of the time, so it counts for no limit of running
                # requests.
                running = self._service.runner.run(call)
                result = await run_while_wanted(running, receive, self._service.stopping)
            else:
                result = await self._service.run(call)
            if isinstance(result, ResultStream):
                response = result
            elif self._operation.etag:
                # A single record is short.
                response = render(self._operation, result, call.known)
            else:
                response = await render_result(self._operation, result, call.known)
        except Exception as error:
            shown = shown_error(self._operation.name, error, _log, exchange.request_id)
            response = self._refuse(shown, exchange)
        if isinstance(response, HttpResponse):
            await send_response(response, send)
        else:
            await stream_while_wanted(
                response, receive, send, self._service.stopping, exchange.request_id
            )

    def _refuse(self, error: MemorywallError, exchange: Exchange) -> HttpResponse:
        """Returns the response for an error."""
        return problem_response(error, exchange.request_id)

    async def _read(self, scope: Scope, receive: Receive, exchange: Exchange) -> OperationCall:
        operation, headers = self._operation, exchange.headers
        if b"%" in scope["raw_path"]:
            check_path(scope["raw_path"])
        principal = await self._service.admit(operation, exchange)
        query: Any = self._empty_query
        text: bytes = scope["query_string"]
        if operation.query is None:
            refuse_query(text)
        elif text or query is None:
            query = decode_query(text, operation.query)
        if_match = None
        if operation.if_match != "none":
            if_match = parse_if_match(operation, header_text(headers, b"if-match"))
        call = OperationCall(operation, principal, scope["path_params"], query, if_match=if_match)
        if not _OPTIONAL.isdisjoint(headers):
            self._read_optional(call, headers)
        if operation.body is not None:
            content = await read_content(headers, receive, self._largest, self._size_hint)
            call.content = content
            if operation.content == "json":
                kind: type = operation.body
                if operation.merge_patch is not None:
                    kind = body_type(operation, _media_type(headers))
                if len(content) <= MOST_DECODED_AT_ONCE:
                    call.body = decode_body(content, kind)
                else:
                    call.body = await asyncio.to_thread(decode_body, content, kind)
        if call.idempotency_key is not None:
            call.fingerprint = fingerprint_of(call)
        if operation.media == "events":
            call.wants_stream = b"text/event-stream" in headers.get(b"accept", b"")
            call.resume_after = _last_event_id(headers)
            call.reauthenticate = lambda: _reauthenticate(self._service, headers)
        return call

    def _read_optional(self, call: OperationCall, headers: dict[bytes, bytes]) -> None:
        """Adds the headers of `_OPTIONAL`, as far as the operation accepts them, to a call.

        Raises RequestError, PreconditionError, ValidationError.
        """
        operation = call.operation
        if b"fencing-token" in headers and operation.fenced:
            token = parse_fencing_token(headers[b"fencing-token"])
            call.principal = replace(call.principal, fencing_token=token)
        if b"x-said-at" in headers and operation.stores:
            said_at = check_instant("X-Said-At", _decode(b"x-said-at", headers[b"x-said-at"]))
            call.principal = replace(call.principal, said_at=said_at)
        condition = header_text(headers, b"if-none-match")
        call.if_none_match = operation.if_none_match and parse_if_none_match(condition)
        call.known = condition if self._is_conditional else None
        if not operation.public:
            call.subject = people_of(headers)
            call.session = header_text(headers, b"x-session-id")
        if b"idempotency-key" in headers and operation.accepts_idempotency_key:
            call.idempotency_key = _idempotency_key(headers)


def fingerprint_of(call: OperationCall) -> bytes:
    """Returns the parts that equal requests of an operation share: name, preconditions and body."""
    condition = b"*" if call.if_none_match else b""
    if not condition and call.if_match is not None:
        condition = b"%d" % call.if_match
    return call.operation.name.encode() + condition + b"\0" + call.content


async def _reauthenticate(service: HttpService, headers: dict[bytes, bytes]) -> None:
    """Raises AuthenticationError if the key has been revoked; for streams."""
    key, agent = header_text(headers, b"x-api-key"), header_text(headers, b"x-agent-id")
    await service.authenticator.authenticate(key or _bearer_token(headers), agent)


async def read_content(
    headers: dict[bytes, bytes], receive: Receive, largest: int, hint: str = ""
) -> bytes:
    """The body, up to `largest` bytes.

    hint: the end of the message of Oversized
    Raises Oversized, and RequestError if the client disconnected.
    """
    announced = headers.get(b"content-length", b"0")
    if announced.isdigit() and int(announced) > largest:
        raise Oversized(f"the body may have at most {largest} bytes{hint}")
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError("the body is incomplete")
        piece = message.get("body", b"")
        size += len(piece)
        if size > largest:
            raise Oversized(f"the body may have at most {largest} bytes{hint}")
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces) if len(pieces) > 1 else pieces[0]


def _bearer_token(headers: dict[bytes, bytes]) -> str | None:
    """Returns the bearer token, None without one. Raises RequestError."""
    scheme, _, token = (header_text(headers, b"authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _media_type(headers: dict[bytes, bytes]) -> str | None:
    media = headers.get(b"content-type")
    return None if media is None else media.decode("latin-1")


def _idempotency_key(headers: dict[bytes, bytes]) -> str | None:
    key = header_text(headers, b"idempotency-key")
    return None if key is None else check_name("Idempotency-Key", key)


def parse_fencing_token(text: bytes) -> int:
    """The number in a Fencing-Token. Raises RequestError."""
    token = text.strip()
    if not token.isdigit() or len(token) > 18:
        raise RequestError("`Fencing-Token` must be the number of a lease or claim, such as 42")
    return int(token)


def _last_event_id(headers: dict[bytes, bytes]) -> int | None:
    """The `seq` of the last event that the client has received, None without the header."""
    last = headers.get(b"last-event-id")
    if not last:
        return None
    if not last.isdigit() or len(last) > 18:
        raise RequestError("`Last-Event-ID` must be the id of an event of this stream")
    return int(last)


def header_text(headers: dict[bytes, bytes], name: bytes) -> str | None:
    """Returns a header as text, None if it is missing. Raises RequestError for a value that is not
    UTF-8."""
    content = headers.get(name)
    return None if content is None else _decode(name, content)


def people_of(headers: dict[bytes, bytes]) -> str | None:
    """Returns the people that the headers bind a request to, None for nobody. Raises
    RequestError."""
    return named_people(
        {
            "X-Subject": header_text(headers, b"x-subject"),
            "X-User": header_text(headers, b"x-user"),
        }
    )


def _decode(name: bytes, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(f"the header `{name.decode()}` is not UTF-8") from None
