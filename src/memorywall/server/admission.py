"""Admits requests: rate limits per principal and tenant, and a share of the server per tenant.

Rates are token buckets: a bucket holds a number of seconds' worth of requests and refills steadily.
The share keeps tenants fair to each other: at most a number of requests of one tenant run at a
time, and more wait in a queue of that tenant. A tenant that floods therefore fills its own queue
and not that of the store, which all tenants share.

The limits are those of one server process and are in memory only.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable

from memorywall.records.errors import RateLimitedError
from memorywall.records.principal import Principal
from memorywall.settings import Settings

_MOST_BUCKETS = 10_000
"""The number of buckets at which full ones are dropped; a new bucket is full."""
_WAITING_PER_SLOT = 8
_RETRY_AFTER = 1.0


class TokenBuckets:
    """The token buckets of one kind of caller.

    rate: tokens per second
    burst: seconds of the rate that a bucket holds; a bucket holds at least one token
    clock: seconds, which only grow
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._most = max(1.0, rate * burst)
        self._clock = clock
        self._buckets: dict[Hashable, tuple[float, float]] = {}

    def wait(self, caller: Hashable) -> float:
        """Seconds until the caller's bucket has a token; 0 if it has one."""
        return max(0.0, (1.0 - self._tokens(caller, self._clock())) / self._rate)

    def take(self, caller: Hashable) -> None:
        """Takes a token out of the caller's bucket."""
        now = self._clock()
        if len(self._buckets) >= _MOST_BUCKETS and caller not in self._buckets:
            self._drop_full(now)
        self._buckets[caller] = (self._tokens(caller, now) - 1.0, now)

    def _tokens(self, caller: Hashable, now: float) -> float:
        tokens, then = self._buckets.get(caller, (self._most, now))
        return min(self._most, tokens + (now - then) * self._rate)

    def _drop_full(self, now: float) -> None:
        full = [one for one in self._buckets if self._tokens(one, now) >= self._most]
        for one in full:
            del self._buckets[one]


class TenantQueue:
    """The running and waiting requests of one tenant.

    running: the number of running requests, without the waiting ones
    """

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


class RequestAdmission:
    """Decides which requests run, and when.

    share: the requests of one tenant that run at the same time
    queues: the queues of the tenants that have sent a request
    clock: seconds, which only grow
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        burst = settings.rate_burst
        self._limits: list[tuple[TokenBuckets, Callable[[Principal], Hashable], str]] = []
        if settings.principal_rate is not None:
            buckets = TokenBuckets(settings.principal_rate, burst, clock)
            self._limits.append((buckets, lambda one: (one.tenant, one.actor), "principal"))
        if settings.tenant_rate is not None:
            buckets = TokenBuckets(settings.tenant_rate, burst, clock)
            self._limits.append((buckets, lambda one: one.tenant, "tenant"))
        self.has_rates = bool(self._limits)
        self.share = settings.tenant_concurrency
        self.queues: dict[str, TenantQueue] = {}

    def check_rate(self, principal: Principal) -> None:
        """Takes a token of the principal and of its tenant. The principal is that of the key.

        Raises RateLimitedError if either has none, and takes none then.
        """
        wait, name = max(
            ((buckets.wait(caller(principal)), name) for buckets, caller, name in self._limits),
            default=(0.0, ""),
        )
        if wait > 0:
            raise RateLimitedError(
                f"this {name} sends too many requests; retry after `retry_after` seconds",
                retry_after=round(wait, 3) or 0.001,
            )
        for buckets, caller, _ in self._limits:
            buckets.take(caller(principal))

    async def enter(self, tenant: str) -> TenantQueue:
        """Starts a request of the tenant, or waits until one of its requests has ended and starts
        this one in its place. Returns the queue of the tenant, for `leave`.

        Raises RateLimitedError if too many requests of the tenant wait.
        """
        queue = self.queues.get(tenant)
        if queue is None:
            queue = self.queues[tenant] = TenantQueue()
        if queue.running < self.share:
            queue.running += 1
            return queue
        if len(queue.waiting) >= self.share * _WAITING_PER_SLOT:
            raise RateLimitedError(
                "too many requests of this tenant wait; retry after `retry_after` seconds",
                retry_after=_RETRY_AFTER,
            )
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave(queue)
            raise
        return queue

    def leave(self, queue: TenantQueue) -> None:
        """Ends a request; the oldest waiting request of the tenant runs instead."""
        while queue.waiting:
            place = queue.waiting.popleft()
            if not place.done():
                # The waiting request takes over the place, so the number of running ones stays.
                place.set_result(None)
                return
        queue.running -= 1
