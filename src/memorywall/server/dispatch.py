"""One ASGI endpoint per operation: authenticate, read, call the handler, answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from starlette.types import Receive, Scope, Send

from memorywall.recall.index import Index
from memorywall.records.errors import MemorywallError, RequestError
from memorywall.records.principal import Principal
from memorywall.server.reading import (
    Oversized,
    check_path,
    decode_body,
    decode_query,
    parse_if_match,
    refuse_query,
)
from memorywall.server.replies import Reply, Stream, problem_reply
from memorywall.wall.door import Door
from memorywall.wall.limits import ATTACH, check_name
from memorywall.wire.operations import Operation

LARGEST_BODY = 1024 * 1024
LARGEST_BATCH_BODY = 16 * 1024 * 1024

_log = logging.getLogger("memorywall.server")


class Authenticator(Protocol):
    """Tells who is asking."""

    async def authenticate(self, key: str | None, agent: str | None) -> Principal:
        """The principal. Raises AuthenticationError, MemoryAccessError."""
        ...


@dataclass(frozen=True, slots=True)
class Service:
    """What every handler may use."""

    door: Door
    authenticator: Authenticator
    stopping: asyncio.Event
    index: Index


@dataclass(slots=True)
class Call:
    """A request, checked. `principal` is the nobody of `_NOBODY` where no key is asked for."""

    operation: Operation
    service: Service
    principal: Principal
    path: dict[str, str]
    query: Any
    body: Any
    content: bytes
    if_match: int | None
    idempotency_key: str | None
    headers: dict[bytes, bytes]

    @property
    def door(self) -> Door:
        return self.service.door

    async def authenticate_again(self) -> None:
        """For replies that outlast the moment: raises when the key has been revoked since."""
        await authenticate(self.service, self.headers)


Handler = Callable[[Call], Awaitable[Reply | Stream]]
_NOBODY: Any = None


class Endpoint:
    """An operation of the table, bound to its handler."""

    def __init__(self, operation: Operation, handler: Handler, service: Service) -> None:
        self._operation = operation
        self._handler = handler
        self._service = service
        self._largest = LARGEST_BATCH_BODY if operation.name == "write_batch" else LARGEST_BODY
        if operation.content == "bytes":
            self._largest = service.door.settings.attachment_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply: Reply | Stream
        try:
            reply = await self._handler(await self._read(scope, receive))
        except MemorywallError as error:
            if error.status >= 500:
                _log.warning(
                    "refused", extra={"operation": self._operation.name, "code": error.code}
                )
            reply = problem_reply(error)
        except Exception as error:
            _log.error(
                "failed",
                extra={"operation": self._operation.name, "error": type(error).__name__},
                exc_info=error,
            )
            reply = problem_reply(MemorywallError("the server failed; the request changed nothing"))
        if isinstance(reply, Reply):
            await reply.send(send)
        else:
            await reply.send_while_wanted(receive, send, self._service.stopping)

    async def _read(self, scope: Scope, receive: Receive) -> Call:
        operation = self._operation
        check_path(scope["raw_path"])
        headers: dict[bytes, bytes] = dict(scope["headers"])
        principal = _NOBODY
        if not operation.public:
            principal = await authenticate(self._service, headers)
            if b"fencing-token" in headers and operation.fenced:
                principal = replace(principal, fencing_token=_fencing_token(headers))
        query: Any = None
        if operation.query is not None:
            query = decode_query(scope["query_string"], operation.query)
        else:
            refuse_query(scope["query_string"])
        if_match = None
        if operation.if_match != "none":
            if_match = parse_if_match(
                _text(headers, b"if-match"), required=operation.if_match == "required"
            )
        content, body = b"", cast(Any, None)
        if operation.body is not None:
            hint = f"; {ATTACH}" if operation.content == "json" else ""
            content = await read_content(headers, receive, self._largest, hint)
            if operation.content == "json":
                body = decode_body(content, operation.body)
        return Call(
            operation,
            self._service,
            principal,
            scope["path_params"],
            query,
            body,
            content,
            if_match,
            _idempotency_key(headers) if operation.repeatable else None,
            headers,
        )


async def authenticate(service: Service, headers: dict[bytes, bytes]) -> Principal:
    """The principal of a request. Raises AuthenticationError, MemoryAccessError."""
    agent = _text(headers, b"x-agent-id")
    return await service.authenticator.authenticate(_key(headers), agent)


async def read_content(
    headers: dict[bytes, bytes], receive: Receive, largest: int, hint: str = ""
) -> bytes:
    """The body, up to `largest` bytes. Raises Oversized, which ends with `hint`, and RequestError
    when the client went away."""
    announced = headers.get(b"content-length", b"0")
    if announced.isdigit() and int(announced) > largest:
        raise Oversized(f"the body may have at most {largest} bytes{hint}")
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError("the body was not sent to its end")
        piece = message.get("body", b"")
        size += len(piece)
        if size > largest:
            raise Oversized(f"the body may have at most {largest} bytes{hint}")
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces) if len(pieces) > 1 else pieces[0]


def _key(headers: dict[bytes, bytes]) -> str | None:
    key = _text(headers, b"x-api-key")
    if key is not None:
        return key
    scheme, _, token = (_text(headers, b"authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _idempotency_key(headers: dict[bytes, bytes]) -> str | None:
    key = _text(headers, b"idempotency-key")
    return None if key is None else check_name("Idempotency-Key", key)


def _fencing_token(headers: dict[bytes, bytes]) -> int:
    token = headers[b"fencing-token"].strip()
    if not token.isdigit() or len(token) > 18:
        raise RequestError("`Fencing-Token` must be the number of a lease or claim, such as 42")
    return int(token)


def _text(headers: dict[bytes, bytes], name: bytes) -> str | None:
    content = headers.get(name)
    if content is None:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(f"the header `{name.decode()}` is not UTF-8") from None
