"""The ASGI application, built from the table of operations."""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from memorywall.recall.index import Index
from memorywall.records.errors import MemorywallError
from memorywall.server.dispatch import Authenticator, Endpoint, Service
from memorywall.server.handlers import handler
from memorywall.server.pages import page_routes
from memorywall.server.replies import problem_reply
from memorywall.server.routing import Router, UnknownMethodError
from memorywall.wall.door import Door
from memorywall.wire.operations import OPERATIONS


class UnknownPathError(MemorywallError):
    """Nothing is served at this path."""

    status = 404
    code = "NOT_FOUND"
    title = "There is nothing at this path; see /docs"


def build_app(
    door: Door,
    authenticator: Authenticator,
    stopping: asyncio.Event | None = None,
    index: Index | None = None,
) -> Router:
    """Every operation of the table, and behind it the pages.

    index: what is searched in; by default one that searches by words only
    stopping: set when the server is about to stop, so that endless streams end
    """
    service = Service(door, authenticator, stopping or asyncio.Event(), index or Index(door))
    pages = Starlette(routes=page_routes(), exception_handlers={HTTPException: _routing_problem})
    pages.router.redirect_slashes = False
    router = Router(otherwise=pages)
    for operation in OPERATIONS:
        endpoint = Endpoint(operation, handler(operation.name), service)
        router.add(operation.method, operation.path, endpoint)
    return router


async def _routing_problem(request: Request, error: Exception) -> Response:
    """Unknown paths and methods among the pages, in the form of every other problem."""
    headers = dict(getattr(error, "headers", None) or {})
    reply = problem_reply(UnknownMethodError() if "Allow" in headers else UnknownPathError())
    return Response(reply.body, reply.status, headers, media_type=reply.media.decode())
