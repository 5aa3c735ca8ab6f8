"""The outermost ASGI application: identifies each request, and measures and logs its reply."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from memorywall.server.access_log import AccessLog
from memorywall.server.exchange import EXCHANGE, Exchange
from memorywall.server.request_ids import RequestIds


class ObservedApp:
    """The whole application, as a server runs it.

    app: the application that replies
    access_log: the log of requests, None for no log
    clock: seconds, which only grow
    """

    def __init__(
        self,
        app: ASGIApp,
        access_log: AccessLog | None,
        ids: RequestIds | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.app = app
        self.access_log = access_log
        self._ids = ids or RequestIds()
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError("the application serves HTTP only")
        exchange = Exchange(scope, send, self._ids, self._clock)
        scope[EXCHANGE] = exchange
        try:
            await self.app(scope, receive, exchange.send)
        finally:
            # Server, scope and exchange refer to one another: garbage that only the collector finds
            # would cost half of the rate.
            del scope[EXCHANGE]
            exchange.finish()
            if self.access_log is not None:
                self.access_log.write(exchange, self._clock() - exchange.started)
