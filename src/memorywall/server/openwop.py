"""Serves OpenWOP: its paths, which may have percent-encoded slashes in a segment, and its flat
errors `{error, message, details?}`."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import cache
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from memorywall.openwop.families import check_families
from memorywall.records.errors import MemorywallError, PreconditionError, ResourceNotFoundError
from memorywall.records.feature_errors import (
    MediaTypeError,
    OpenWopError,
    WorkspaceConflictError,
)
from memorywall.server.dispatch import HttpService, OperationEndpoint
from memorywall.server.exchange import EXCHANGE, Exchange
from memorywall.server.replies import problem_response, send_response
from memorywall.server.routing import Router, RouteTable
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.requests.run_secrets import RunSecret, redact_secrets
from memorywall.wire.openwop import OPENWOP_OPERATIONS, code_of
from memorywall.wire.results import JSON, HttpResponse, encode

_FORK = ":fork"


class OpenWopApp:
    """Routes the paths of OpenWOP, and any other path to `otherwise`. Raises ConfigurationError for
    settings that name an unknown family."""

    def __init__(self, http: HttpService, otherwise: ASGIApp) -> None:
        check_families(http.runner.service.settings)
        endpoints = [_Endpoint(operation, http) for operation in OPENWOP_OPERATIONS]
        self._router = Router(_route_table(), endpoints, _refuse_path, flat_response)
        self._otherwise = otherwise

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        path: str = scope["path"]
        if not path.startswith("/v1/") and path not in ("/v1", "/.well-known/openwop"):
            return self._otherwise(scope, receive, send)
        # The path is decoded after it is divided, so that a reference may contain slashes.
        raw = scope["raw_path"].decode("latin-1").partition("?")[0].replace("%3A", ":")
        if raw.endswith(_FORK) and raw.startswith("/v1/runs/"):
            raw = f"{raw.removesuffix(_FORK)}/{_FORK}"
        return self._router({**scope, "path": raw}, receive, send)


@cache
def _route_table() -> RouteTable:
    return RouteTable(
        (one.method, one.path.replace(_FORK, f"/{_FORK}")) for one in OPENWOP_OPERATIONS
    )


async def _refuse_path(scope: Scope, receive: Receive, send: Send) -> None:
    error = ResourceNotFoundError("there is no such path; see /.well-known/openwop")
    await send_response(flat_response(error, scope[EXCHANGE].request_id), send)


class _Endpoint(OperationEndpoint):
    """The endpoint of an operation of OpenWOP."""

    async def _read(self, scope: Scope, receive: Receive, exchange: Exchange) -> OperationCall:
        media = exchange.headers.get(b"content-type", JSON).partition(b";")[0].strip().lower()
        if self._operation.body is not None and media != JSON:
            await self._service.admit(self._operation, exchange)
            raise MediaTypeError
        try:
            call = await super()._read(scope, receive, exchange)
        except PreconditionError:
            # An entity tag of another host is not that of the file.
            raise WorkspaceConflictError("`If-Match` is not a version of this file") from None
        call.path = {name: unquote(text) for name, text in call.path.items()}
        call.wants_stream = JSON not in exchange.headers.get(b"accept", b"")
        return call

    def _refuse(self, error: MemorywallError, exchange: Exchange) -> HttpResponse:
        if exchange.principal is None:
            return flat_response(error, exchange.request_id)
        secrets = self._service.runner.service.secrets.of(exchange.principal.tenant, None)
        return flat_response(error, exchange.request_id, secrets)


def flat_response(
    error: MemorywallError, request_id: str, secrets: Sequence[RunSecret] = ()
) -> HttpResponse:
    """Returns an error in the flat form, with the headers of a problem document.

    request_id: the id of the refused request, which is in a header
    secrets: what must not be in the message, such as in the name of an unknown field
    """
    problem = problem_response(error, request_id)
    document: dict[str, object] = {
        "error": code_of(error),
        "message": redact_secrets(secrets, error.detail),
    }
    if isinstance(error, OpenWopError) and error.details:
        document["details"] = error.details
    return HttpResponse(problem.status, encode(document), problem.headers)
