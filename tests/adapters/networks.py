"""Networks between an adapter and the application of a service, which fail as a test asks."""

from __future__ import annotations

from typing import Any

import httpx

from memorywall.sdk.client import AsyncClient
from tests.support.service import RunningService


class Stopped(BaseException):
    """The process of the writer is killed."""


class Network(httpx.AsyncBaseTransport):
    """Carries requests to a service.

    loses_replies: whether the first reply to each write is lost
    is_away: whether no request arrives
    left: the number of requests after which the process of the client is killed; None for never
    lasts: the number of requests after which the server is away; None for never
    """

    def __init__(self, service: RunningService) -> None:
        self._inner = httpx.ASGITransport(service.app)
        self._heard: set[Any] = set()
        self.loses_replies = False
        self.is_away = False
        self.left: int | None = None
        self.lasts: int | None = None
        self.lost = 0
        self.operations: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_away or self.lasts == 0:
            raise httpx.ConnectError("no route", request=request)
        if self.left == 0:
            raise Stopped
        self.left = None if self.left is None else self.left - 1
        self.lasts = None if self.lasts is None else self.lasts - 1
        self.operations.append(f"{request.method} {request.url.path}")
        response = await self._inner.handle_async_request(request)
        headers = [request.headers.get(one) for one in ("idempotency-key", "if-match")]
        sent = (request.method, str(request.url), *headers, request.content)
        if self.loses_replies and request.method != "GET" and sent not in self._heard:
            self._heard.add(sent)
            self.lost += 1
            await response.aread()
            raise httpx.ReadError("lost, as the test asked", request=request)
        return response


def connect(network: Network, key: str) -> AsyncClient:
    """A client over a network."""
    return AsyncClient("http://memorywall.test", key, transport=network)
