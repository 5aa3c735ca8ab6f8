"""Converts SDK requests to operation calls, and their results to responses.

Everything is checked as for a request over HTTP, with the same errors. Only the encodings as HTTP
and JSON are omitted.
"""

from __future__ import annotations

import logging
from math import isfinite
from typing import Any

from memorywall.records.principal import Principal
from memorywall.sdk.effects import Request, Response
from memorywall.sdk.executors import UNBOUND, RequestBinding
from memorywall.sdk.retry import encode
from memorywall.server.calls import make_call
from memorywall.server.dispatch import shown_error
from memorywall.server.request_decoder import DEEPEST, decode_json
from memorywall.service.requests.operation_context import OperationCall
from memorywall.settings import Settings
from memorywall.wire.results import HttpResponse, entity_tag, is_known

_BITS_OF_A_PLAIN_NUMBER = 63
_log = logging.getLogger("memorywall.in_process")


def call_of(
    request: Request,
    principal: Principal,
    settings: Settings,
    binding: RequestBinding = UNBOUND,
    *,
    with_key: bool = False,
) -> OperationCall:
    """Returns the call of a request. Raises the errors of the server for an invalid request.

    binding: what the client binds the request to
    with_key: whether it has the idempotency key, for a request that another process may have run.
        No response is lost in process, so that the default is false.
    """
    operation = request.record
    request.check_path()
    body = request.body
    if operation.body is not None and operation.content == "json":
        body = read_as_json(body)
    call = make_call(
        operation,
        principal,
        settings,
        path=request.path,
        query=request.query,
        body=body,
        if_match=request.if_match,
        if_none_match=request.if_none_match,
        media_type=request.media_type,
        fencing_token=request.fencing_token,
        idempotency_key=request.idempotency_key if with_key else None,
        subject=binding.subject,
        session=binding.session,
        said_at=binding.said_at,
    )
    call.wants_stream = request.resume_after is not None
    call.resume_after = request.resume_after
    return call


def response_of(call: OperationCall, result: Any) -> Response:
    """Returns the response for the result of a call."""
    if result is None:
        return Response(204)
    if call.known is not None:
        tag = entity_tag(result)
        if tag is not None and is_known(call.known, tag):
            return Response(304)
    if isinstance(result, HttpResponse):
        return Response(result.status, result.body)
    return Response(call.operation.status_of(result), result=result)


def make_refusal(operation: str, error: Exception) -> Response:
    """Returns the response for an exception of an operation."""
    shown = shown_error(operation, error, _log)
    return Response(shown.status, error=shown)


def read_as_json(body: Any) -> Any:
    """Returns a copy of a body with the values that its JSON text has. Raises the errors of
    decoding that text."""
    try:
        return _copy(body, 0)
    except (_Unusual, UnicodeEncodeError):
        return decode_json(encode(body))


class _Unusual(Exception):
    """A value that may change when it is encoded and decoded as JSON."""


def _copy(node: Any, depth: int) -> Any:
    """Copies dicts, lists and scalars. Raises _Unusual, and UnicodeEncodeError."""
    kind = type(node)
    if kind is str:
        if not node.isascii():
            node.encode()
        return node
    if depth > DEEPEST:
        raise _Unusual
    if kind is dict:
        copied = {}
        for name, one in node.items():
            if type(name) is not str or not name.isascii():
                raise _Unusual
            copied[name] = _copy(one, depth + 1)
        return copied
    if kind is list or kind is tuple:
        return [_copy(one, depth + 1) for one in node]
    if node is None or kind is bool:
        return node
    if kind is int and node.bit_length() <= _BITS_OF_A_PLAIN_NUMBER:
        return node
    if kind is float and isfinite(node):
        return node
    raise _Unusual
