"""The ASGI application, built from the table of operations."""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from memorywall.records.errors import MemorywallError
from memorywall.server.dispatch import Authenticator, Endpoint, Service
from memorywall.server.handlers import HANDLERS
from memorywall.server.pages import page_routes
from memorywall.server.replies import encode
from memorywall.wall.door import Door
from memorywall.wire.operations import OPERATIONS
from memorywall.wire.service import problem


class UnknownPathError(MemorywallError):
    """Nothing is served at this path."""

    status = 404
    code = "NOT_FOUND"
    title = "There is nothing at this path; see /docs"


class UnknownMethodError(MemorywallError):
    """The path is served, but not for this method."""

    status = 405
    code = "METHOD_NOT_ALLOWED"
    title = "This path does not take this method"


class Methods:
    """The operations of one path, by method. HEAD is answered like GET; the server drops the body."""

    def __init__(self, endpoints: dict[str, Endpoint]) -> None:
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await self._endpoints[method](scope, receive, send)


def build_app(
    door: Door, authenticator: Authenticator, stopping: asyncio.Event | None = None
) -> Starlette:
    """Every operation of the table, the OpenAPI document and the pages over it.

    stopping: set when the server is about to stop, so that endless streams end
    """
    service = Service(door, authenticator, stopping or asyncio.Event())
    app = Starlette(
        routes=[*_operation_routes(service), *page_routes()],
        exception_handlers={HTTPException: _routing_problem},
    )
    app.router.redirect_slashes = False
    return app


def _operation_routes(service: Service) -> list[BaseRoute]:
    paths: dict[str, dict[str, Endpoint]] = {}
    for operation in OPERATIONS:
        endpoint = Endpoint(operation, HANDLERS[operation.name], service)
        paths.setdefault(operation.path, {})[operation.method] = endpoint
    return [
        Route(path, Methods(endpoints), methods=list(endpoints))
        for path, endpoints in paths.items()
    ]


async def _routing_problem(request: Request, error: Exception) -> Response:
    """Unknown paths and methods, in the form of every other problem."""
    allowed = getattr(error, "headers", None) or {}
    refusal = UnknownMethodError() if "Allow" in allowed else UnknownPathError()
    return Response(
        encode(problem(refusal)),
        refusal.status,
        headers=dict(allowed),
        media_type="application/problem+json",
    )
