"""The ASGI application, built from the operations table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from memorywall.openwop.table import FUNCTIONS
from memorywall.recall.index import Index
from memorywall.records.errors import MemorywallError
from memorywall.server.access_log import AccessLog
from memorywall.server.admission import RequestAdmission
from memorywall.server.cors import allow_origins
from memorywall.server.dispatch import Authenticator, HttpService, OperationEndpoint
from memorywall.server.exchange import EXCHANGE
from memorywall.server.json_rpc import JsonRpcEndpoint
from memorywall.server.observation import ObservedApp
from memorywall.server.openwop import OpenWopApp
from memorywall.server.pages import page_routes
from memorywall.server.replies import problem_response
from memorywall.server.routing import Router, RouteTable, UnknownMethodError
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.operation_runner import OperationRunner
from memorywall.wire.json_rpc import PATH
from memorywall.wire.operations import OPERATIONS

Endpoints: TypeAlias = Mapping[tuple[str, str], Callable[[HttpService], ASGIApp]]
"""Further endpoints by method and path, each made of the services of the application."""


class UnknownPathError(MemorywallError):
    """The path is unknown."""

    status = 404
    code = "NOT_FOUND"
    title = "Unknown path; see /docs"


def build_app(
    service: SharedServices,
    authenticator: Authenticator,
    stopping: asyncio.Event | None = None,
    index: Index | None = None,
    endpoints: Endpoints = MappingProxyType({}),
) -> ObservedApp:
    """The application with every operation of the table, and the pages.

    service: the shared services of the open store
    authenticator: maps API keys to principals
    stopping: is set when the server stops, so that endless streams end
    index: the search index; by default an index that searches by words only
    endpoints: endpoints of higher layers; by default none
    """
    runner = OperationRunner(service, FUNCTIONS, index or Index(service))
    settings = service.settings
    http = HttpService(
        runner, authenticator, stopping or asyncio.Event(), RequestAdmission(settings)
    )
    pages = Starlette(routes=page_routes(), exception_handlers={HTTPException: _routing_problem})
    pages.router.redirect_slashes = False
    own = [OperationEndpoint(operation, http) for operation in OPERATIONS]
    others = [make(http) for make in endpoints.values()]
    router = Router(
        route_table(tuple(endpoints)),
        [*own, JsonRpcEndpoint(http), *others],
        otherwise=OpenWopApp(http, otherwise=pages),
    )
    app = allow_origins(router, settings.cors_origins) if settings.cors_origins else router
    return ObservedApp(app, AccessLog(service.clock) if settings.access_log else None)


@cache
def route_table(others: tuple[tuple[str, str], ...] = ()) -> RouteTable:
    """The routes of all operations, numbered in the order of the operations table, of JSON-RPC and
    of further endpoints by method and path."""
    routes = [(operation.method, operation.path) for operation in OPERATIONS]
    return RouteTable([*routes, ("POST", PATH), *others])


async def _routing_problem(request: Request, error: Exception) -> Response:
    """Renders unknown paths and methods of the pages as problem documents."""
    headers = dict(getattr(error, "headers", None) or {})
    unknown = UnknownMethodError() if "Allow" in headers else UnknownPathError()
    rendered = problem_response(unknown, request.scope[EXCHANGE].request_id)
    return Response(rendered.body, rendered.status, headers, media_type=rendered.media.decode())
