"""`client.claims`, sync and async. Its background renewal differs between the two."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from memorywall.sdk.claims import Claim, ClaimsCore
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver
from memorywall.sdk.facade import AsyncFacade, Facade, awaiting, blocking
from memorywall.sdk.fencing import enter, leave


class ClaimsClient(Facade[ClaimsCore]):
    """Claims keys of shared state for a limited time."""

    acquire = blocking(ClaimsCore.acquire)
    renew = blocking(ClaimsCore.renew)
    release = blocking(ClaimsCore.release)
    get = blocking(ClaimsCore.get)
    list = blocking(ClaimsCore.list)

    @contextmanager
    def hold(
        self,
        key: str,
        ttl: int = 30,
        *,
        scope: str = "global",
        renew: bool = True,
        purpose: str | None = None,
        wait: float = 0.0,
    ) -> Iterator[Claim]:
        """Claims a key of shared state for the duration of a `with` block.

        ttl: seconds until the claim expires without renewal
        renew: whether a background thread or task renews the claim at half of that time
        wait: seconds for which to try again while another client holds the key; see `acquire`

        Writes of `client.shared` to this key and scope in the block carry the claim's token. After
        the claim is over they raise FencedError. The token applies to the thread or task that
        entered the block and to the tasks that it starts, not to others that share the client. At
        the end of the block the claim is released; a claim that is lost by then raises no error.
        `claim.lost` and `claim.check()` report the state.
        """
        claim = self._executor.run(
            self._core.begin(key, ttl, scope, purpose, wait, self._executor.clock)
        )
        stop = threading.Event()
        enter(claim)
        try:
            if renew:
                threading.Thread(
                    target=self._keep, args=(claim, stop), name="memorywall-claim", daemon=True
                ).start()
            yield claim
        finally:
            claim.give_back()
            stop.set()
            leave(claim)
            with _unless_closed(self._executor):
                self._executor.run(self._core.end(claim))

    def _keep(self, claim: Claim, stop: threading.Event) -> None:
        executor = self._executor.with_pause(stop.wait)
        with _unless_closed(executor):
            executor.run(self._core.keep(claim))


class AsyncClaimsClient(AsyncFacade[ClaimsCore]):
    """Claims keys of shared state for a limited time."""

    acquire = awaiting(ClaimsCore.acquire)
    renew = awaiting(ClaimsCore.renew)
    release = awaiting(ClaimsCore.release)
    get = awaiting(ClaimsCore.get)
    list = awaiting(ClaimsCore.list)

    @asynccontextmanager
    async def hold(
        self,
        key: str,
        ttl: int = 30,
        *,
        scope: str = "global",
        renew: bool = True,
        purpose: str | None = None,
        wait: float = 0.0,
    ) -> AsyncIterator[Claim]:
        claim = await self._executor.run(
            self._core.begin(key, ttl, scope, purpose, wait, self._executor.clock)
        )
        keeping = asyncio.create_task(self._keep(claim)) if renew else None
        enter(claim)
        try:
            yield claim
        finally:
            claim.give_back()
            leave(claim)
            if keeping is not None:
                keeping.cancel()
            # Cancellation within the block also releases the claim.
            ending = asyncio.create_task(self._end(claim))
            _ending.add(ending)
            ending.add_done_callback(_ending.discard)
            await asyncio.shield(ending)

    hold.__doc__ = ClaimsClient.hold.__doc__

    async def _keep(self, claim: Claim) -> None:
        with _unless_closed(self._executor):
            await self._executor.run(self._core.keep(claim))

    async def _end(self, claim: Claim) -> None:
        with _unless_closed(self._executor):
            await self._executor.run(self._core.end(claim))


@contextmanager
def _unless_closed(executor: BlockingDriver | AwaitingDriver) -> Iterator[None]:
    """Ignores that a client that was closed within the block cannot send the release: the claim
    expires."""
    try:
        yield
    except RuntimeError:
        if not executor.is_closed:
            raise


# The event loop keeps only weak references to tasks.
_ending: set[asyncio.Task[None]] = set()
