"""MCP over streamable HTTP: a part of memorywall's own server.

Each request stands alone: it has the credentials and the bindings of every other request of the
server (`X-API-Key` or `Authorization`, `X-Agent-ID`, `X-Subject`, `X-Session-ID`), and its calls
run as the operations of the caller, with the same limits, metrics and log. The MCP package is
imported with the first request.
"""

from __future__ import annotations

import asyncio
import logging
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.types import Receive, Scope, Send

from memorywall.adapters.mcp.metadata import METADATA, ResourceMetadata, challenge
from memorywall.in_process.calls import call_of, make_refusal, response_of
from memorywall.records.errors import MemoryAccessError, MemorywallError, UnavailableError
from memorywall.sdk.client import AsyncClient
from memorywall.sdk.effects import Open, Request, Response
from memorywall.sdk.executors import AwaitedStream, AwaitingDriver
from memorywall.server.app import Endpoints
from memorywall.server.dispatch import HttpService, header_text, people_of
from memorywall.server.exchange import EXCHANGE, Exchange
from memorywall.server.replies import problem_response, send_response
from memorywall.wire.operations import OPERATIONS_BY_NAME

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

_CLIENT = "memorywall.client"
"""The key of the caller's client in an ASGI scope."""
_OWN_PAGES = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
_log = logging.getLogger("memorywall.server")


def mcp_endpoints() -> Endpoints:
    """The endpoints of MCP for `build_app`; none if the MCP package is not installed."""
    if find_spec("mcp") is None:
        return {}
    return {
        ("POST", "/mcp"): lambda service: McpEndpoint(service, "memory"),
        ("POST", "/mcp/graph"): lambda service: McpEndpoint(service, "graph"),
        ("GET", METADATA): ResourceMetadata,
        ("GET", f"{METADATA}/{{path:path}}"): ResourceMetadata,
    }


class McpEndpoint:
    """The ASGI endpoint of one profile.

    service: runs the operations
    profile: `memory` or `graph`
    """

    def __init__(self, service: HttpService, profile: str) -> None:
        self._service = service
        self._profile = profile
        self._settings = service.runner.service.settings
        self._statistics = service.runner.service.requests.of("mcp")
        self._starting: asyncio.Task[StreamableHTTPSessionManager] | None = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange: Exchange = scope[EXCHANGE]
        exchange.begin("mcp", self._statistics)
        try:
            await self._admit(exchange)
            driver = CallerDriver(self._service, exchange)
            if self._starting is None:
                self._starting = asyncio.create_task(self._start())
            manager = await asyncio.shield(self._starting)
        except MemorywallError as error:
            response = problem_response(error, exchange.request_id)
            if error.status == 401 and self._service.authenticator.issuers:
                header = challenge(self._settings, scope, exchange)
                response = msgspec.structs.replace(response, headers=(header,))
            await send_response(response, send)
            return
        caller = exchange.principal
        scope[_CLIENT] = AsyncClient.over(driver, agent=None if caller is None else caller.id)
        # The parser of the server leaves the space at the end of a value (RFC 9110 section 5.5).
        scope["headers"] = [(name, text.strip(b" \t")) for name, text in scope["headers"]]
        await manager.handle_request(scope, receive, send)

    async def _admit(self, exchange: Exchange) -> None:
        """Raises the errors of access. Without the store nobody can be authenticated: the tools
        then say so, because their calls fail in the same way."""
        origin = header_text(exchange.headers, b"origin")
        if origin is not None and not self._is_allowed(origin):
            # The name of another site may lead to this address (DNS rebinding).
            raise MemoryAccessError("pages of this origin may not call; see `cors_origins`")
        try:
            await self._service.admit(OPERATIONS_BY_NAME["whoami"], exchange)
        except UnavailableError as error:
            _log.warning("refused", extra={"operation": "mcp", "code": error.code})

    def _is_allowed(self, origin: str) -> bool:
        return bool(_OWN_PAGES.fullmatch(origin)) or origin in self._settings.cors_origins

    async def _start(self) -> StreamableHTTPSessionManager:
        """Imports the MCP package in a thread and starts its session manager, which runs until the
        event loop ends."""
        manager = await asyncio.to_thread(self._make_manager)
        started = asyncio.Event()
        self._running = asyncio.create_task(_run(manager, started))
        await started.wait()
        return manager

    def _make_manager(self) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from memorywall.adapters.mcp.profiles import make_profile

        server = make_profile(
            self._profile,
            _client_of,
            self._service.runner.service.clock,
        )
        return StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=True,
            max_request_body_size=self._settings.body_limit,
        )


def _client_of(context: Any) -> AsyncClient:
    client: AsyncClient = context.request.scope[_CLIENT]
    return client


async def _run(manager: StreamableHTTPSessionManager, started: asyncio.Event) -> None:
    """Runs a session manager until the task is cancelled."""
    async with manager.run():
        started.set()
        await asyncio.get_running_loop().create_future()


class CallerDriver(AwaitingDriver):
    """Runs the requests of the SDK as operations of the caller of an HTTP request.

    exchange: the HTTP request
    """

    def __init__(self, service: HttpService, exchange: Exchange) -> None:
        super().__init__(subject=people_of(exchange.headers))
        self.session = header_text(exchange.headers, b"x-session-id")
        self._service = service
        self._exchange = exchange

    async def send(self, request: Request) -> Response:
        service, exchange = self._service, self._exchange
        exchange.calls = (*exchange.calls, request.operation)
        with service.runner.service.requests.of(request.operation).measure() as measured:
            try:
                principal = await service.admit(request.record, exchange)
                settings = service.runner.service.settings
                call = call_of(request, principal, settings, self.subject, self.session)
                response = response_of(call, await service.run(call))
            except Exception as error:
                response = make_refusal(request.operation, error)
            measured.status = response.status
        return response

    async def open(self, step: Open) -> tuple[Response, AwaitedStream]:
        raise NotImplementedError("no tool reads a stream")

    async def close(self) -> None:
        """Does nothing: the server stays open."""

    @property
    def is_closed(self) -> bool:
        return False
