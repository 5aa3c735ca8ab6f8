"""One request and what is known of its reply, for logs and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence

from starlette.types import Message, Scope, Send

from memorywall.records.principal import Principal
from memorywall.server.request_ids import RequestIds, TraceContext
from memorywall.service.requests.request_statistics import NO_REPLY, OperationStatistics

EXCHANGE = "memorywall.exchange"
"""The key of the exchange in an ASGI scope."""


_SINGLE = {
    one.lower().encode(): one
    for one in (
        "X-API-Key", "Authorization", "X-Agent-ID", "X-Subject", "X-User", "X-Session-ID",
        "X-Said-At", "If-Match", "Idempotency-Key", "Fencing-Token",
    )
}  # fmt: skip
"""Headers that decide who may do what. A proxy and this server could read a repeated one
differently."""


def _find_repeated(names: Iterable[bytes]) -> str:
    """Returns a repeated header of `_SINGLE`, "" for none."""
    counts = Counter(names)
    return next((shown for name, shown in _SINGLE.items() if counts[name] > 1), "")


class Exchange:
    """One request and what is known of its reply.

    headers: the headers of the request; of a repeated one the last
    repeated: a header of access or of a precondition that the request repeats, "" for none
    operation: the name of the operation, "" for a page, an unknown path or an unknown method
    calls: the operations of a JSON-RPC request, in order; empty for other requests
    principal: the caller, None before authentication and for public operations
    started, answered: seconds of a clock that only grows; `answered` is the begin of the reply, 0
        before it
    trace: the place of the request in a trace, None without a valid `traceparent`
    status: the status of the reply
    size: bytes of the reply's body
    result_bytes: bytes of the results of a JSON-RPC request
    """

    # Defaults of the class, because most requests change few of them.
    operation = ""
    repeated = ""
    calls: Sequence[str] = ()
    principal: Principal | None = None
    statistics: OperationStatistics | None = None
    trace: TraceContext | None = None
    status = NO_REPLY
    answered = 0.0
    size = 0
    result_bytes = 0

    def __init__(
        self, scope: Scope, send: Send, ids: RequestIds, clock: Callable[[], float]
    ) -> None:
        self._send = send
        self._clock = clock
        self.started = clock()
        pairs = scope["headers"]
        headers: dict[bytes, bytes] = dict(pairs)
        self.headers = headers
        if len(headers) != len(pairs):
            self.repeated = _find_repeated(name for name, _ in pairs)
        given = headers.get(b"x-request-id")
        self.request_id = ids.new() if given is None else ids.read(given)
        if b"traceparent" in headers:
            self.trace = ids.read_trace(headers[b"traceparent"])

    def begin(self, operation: str, statistics: OperationStatistics) -> None:
        """Records which operation the request is for."""
        self.operation = operation
        self.statistics = statistics
        statistics.in_flight += 1

    def send(self, message: Message) -> Awaitable[None]:
        """Sends a part of the reply, whose head gets the ids."""
        if "body" in message:
            self.size += len(message["body"])
        elif "status" in message:
            self.status = message["status"]
            self.answered = self._clock()
            message["headers"].append((b"x-request-id", self.request_id.encode()))
            if self.trace is not None:
                message["headers"].append((b"traceparent", self.trace.header))
        return self._send(message)

    def finish(self) -> None:
        """Counts the request, whose latency is the time until its reply began."""
        statistics = self.statistics
        if statistics is not None:
            statistics.in_flight -= 1
            statistics.observe(self.status, (self.answered or self._clock()) - self.started)
