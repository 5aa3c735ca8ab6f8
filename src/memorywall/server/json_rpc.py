"""JSON-RPC 2.0 at `POST /rpc`: every operation with a JSON request and response, by name.

The method is the name of the operation. The parameters are an object with the path parameters,
query parameters and body fields by name and, for operations that accept them, `if_match`,
`if_none_match`, `media_type`, `idempotency_key` and `fencing_token`. The calls of a batch run in
order, each on its own. An error's `data` is the problem document of the HTTP response.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from memorywall.records.errors import MemorywallError, RequestError
from memorywall.records.principal import Principal
from memorywall.server.calls import make_call
from memorywall.server.dispatch import (
    HttpService,
    header_text,
    people_of,
    read_content,
    shown_error,
)
from memorywall.server.exchange import EXCHANGE, Exchange
from memorywall.server.replies import (
    problem_document,
    problem_response,
    render_result,
    send_response,
)
from memorywall.server.request_decoder import MOST_DECODED_AT_ONCE, decode_json, refuse_query
from memorywall.service.requests.operation_context import OperationCall
from memorywall.wire.json_rpc import METHODS, MOST_CALLS, NAME
from memorywall.wire.operation import Operation
from memorywall.wire.parameters import parameters_of
from memorywall.wire.results import HttpResponse, encode

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
_REFUSED = -32000
_MOST_ENCODED_AT_ONCE = 8 * 1024 * 1024
"""Bytes of results that the event loop puts together; a thread does it for more."""
_log = logging.getLogger("memorywall.server")


class JsonRpcError(Exception):
    """A request that does not lead to an operation."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class JsonRpcEndpoint:
    """Runs the calls of a request."""

    def __init__(self, service: HttpService) -> None:
        self._service = service
        self._largest = service.runner.service.settings.batch_body_limit
        self._statistics = service.runner.service.requests.of(NAME)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange: Exchange = scope[EXCHANGE]
        exchange.begin(NAME, self._statistics)
        try:
            refuse_query(scope["query_string"])
            content = await read_content(exchange.headers, receive, self._largest)
        except MemorywallError as error:
            await send_response(problem_response(error, exchange.request_id), send)
            return
        answer = await self._answer(content, exchange)
        if answer is None:
            body = b""
        elif exchange.result_bytes <= _MOST_ENCODED_AT_ONCE:
            body = encode(answer)
        else:
            body = await asyncio.to_thread(encode, answer)
        await send_response(HttpResponse(204 if answer is None else 200, body), send)

    async def _answer(self, content: bytes, exchange: Exchange) -> Any:
        """Returns the response object, or a list of them; None if there is no response."""
        try:
            if len(content) <= MOST_DECODED_AT_ONCE:
                request = decode_json(content)
            else:
                request = await asyncio.to_thread(decode_json, content)
        except RequestError as error:
            return _error(None, PARSE_ERROR, error.detail)
        if not isinstance(request, list):
            return await self._run(request, exchange)
        if not 0 < len(request) <= MOST_CALLS:
            return _error(None, INVALID_REQUEST, f"a batch has 1 to {MOST_CALLS} calls")
        answers = []
        for one in request:
            answers.append(await self._run(one, exchange))
            # Most calls do not suspend. Without this pause, they would block all other requests.
            await asyncio.sleep(0)
        return [answer for answer in answers if answer is not None] or None

    async def _run(self, request: Any, exchange: Exchange) -> dict[str, Any] | None:
        """The response object of one call; None for a notification."""
        try:
            operation, params = _check_call(request)
        except JsonRpcError as error:
            if error.code != INVALID_REQUEST and "id" not in request:
                return None
            return _error(_id_of(request), error.code, str(error))
        exchange.calls = (*exchange.calls, operation.name)
        with self._service.runner.service.requests.of(operation.name).measure() as measured:
            try:
                principal = await self._service.admit(operation, exchange)
                call = self._call(operation, principal, params, exchange.headers)
                result = await self._service.run(call)
                response = await render_result(operation, result, call.known)
                measured.status = response.status
            except Exception as error:
                shown = shown_error(operation.name, error, _log, exchange.request_id)
                measured.status = shown.status
                refused = _make_refusal(_id_of(request), shown, exchange.request_id)
                return refused if "id" in request else None
        if "id" not in request:
            return None
        exchange.result_bytes += len(response.body)
        encoded = msgspec.Raw(response.body) if response.body else None
        return {"jsonrpc": "2.0", "result": encoded, "id": request["id"]}

    def _call(
        self,
        operation: Operation,
        principal: Principal,
        params: Mapping[str, Any],
        headers: dict[bytes, bytes],
    ) -> OperationCall:
        given = parameters_of(operation, params)
        return make_call(
            operation,
            principal,
            self._service.runner.service.settings,
            path=given.path,
            query=given.query,
            body=given.body,
            if_match=given.if_match,
            if_none_match=given.if_none_match,
            media_type=given.media_type,
            fencing_token=given.fencing_token,
            idempotency_key=given.idempotency_key,
            subject=people_of(headers),
            session=header_text(headers, b"x-session-id"),
            said_at=header_text(headers, b"x-said-at"),
        )


def _check_call(request: Any) -> tuple[Operation, Mapping[str, Any]]:
    """The operation and the parameters of a request. Raises JsonRpcError."""
    if (
        not isinstance(request, dict)
        or request.get("jsonrpc") != "2.0"
        or not isinstance(request.get("method"), str)
        or not request.keys() <= {"jsonrpc", "method", "params", "id"}
        or not _is_id(request.get("id"))
    ):
        raise JsonRpcError(INVALID_REQUEST, "this is not a JSON-RPC 2.0 request")
    operation = METHODS.get(request["method"])
    if operation is None:
        raise JsonRpcError(METHOD_NOT_FOUND, "there is no operation of this name for JSON-RPC")
    params = request.get("params", {})
    if not isinstance(params, dict):
        raise JsonRpcError(INVALID_PARAMS, "`params` must be an object: parameters go by name")
    return operation, params


def _is_id(given: Any) -> bool:
    return given is None or (isinstance(given, str | int) and not isinstance(given, bool))


def _id_of(request: Any) -> Any:
    given = request.get("id") if isinstance(request, dict) else None
    return given if _is_id(given) else None


def _make_refusal(call_id: Any, error: MemorywallError, request_id: str) -> dict[str, Any]:
    """The response object for an error of an operation.

    call_id: the `id` of the call
    request_id: the id of the HTTP request
    """
    if error.status >= 500:
        code = INTERNAL_ERROR
    elif error.status in (400, 422):
        code = INVALID_PARAMS
    else:
        code = _REFUSED - (error.status - 400)
    return _error(call_id, code, error.title, problem_document(error, request_id))


def _error(request_id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "error": error, "id": request_id}
