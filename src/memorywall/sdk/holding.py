"""`client.claims` in both colours: the one group that does something beside what is called."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from memorywall.sdk.claims import Claim, ClaimsLogic
from memorywall.sdk.drivers import AsyncDriver, Driver
from memorywall.sdk.facade import AsyncFacade, Facade, awaiting, blocking
from memorywall.sdk.fencing import enter, leave


class Claims(Facade[ClaimsLogic]):
    """Claims keys of shared state, for a while."""

    acquire = blocking(ClaimsLogic.acquire)
    renew = blocking(ClaimsLogic.renew)
    release = blocking(ClaimsLogic.release)
    get = blocking(ClaimsLogic.get)
    list = blocking(ClaimsLogic.list)

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
        """Holds a key of shared state for the length of a `with` block.

        ttl: seconds after which it is free again if this process is heard of no more
        renew: whether it is renewed, in the background, whenever half of that time is over
        wait: seconds for which to try again while another holds it; see `acquire`

        Writes of `client.shared` to this key and scope in the block carry the claim's token: as
        soon as the claim is over they raise FencedError, whoever holds it then. The token goes with
        the thread or task that entered the block and the tasks it starts; others that share the
        client do not write under it. At the end the claim is given back; one that is lost by then
        raises nothing. `claim.lost` and `claim.check()` tell how it stands.
        """
        claim = self._driver.run(
            self._logic.begin(key, ttl, scope, purpose, wait, self._driver.clock)
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
            with _unless_closed(self._driver):
                self._driver.run(self._logic.end(claim))

    def _keep(self, claim: Claim, stop: threading.Event) -> None:
        driver = Driver(self._driver.http, pause=stop.wait, clock=self._driver.clock)
        with _unless_closed(driver):
            driver.run(self._logic.keep(claim))


class AsyncClaims(AsyncFacade[ClaimsLogic]):
    """Claims keys of shared state, for a while."""

    acquire = awaiting(ClaimsLogic.acquire)
    renew = awaiting(ClaimsLogic.renew)
    release = awaiting(ClaimsLogic.release)
    get = awaiting(ClaimsLogic.get)
    list = awaiting(ClaimsLogic.list)

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
        claim = await self._driver.run(
            self._logic.begin(key, ttl, scope, purpose, wait, self._driver.clock)
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
            # Whoever is cancelled within the block still gives back what it held.
            ending = asyncio.create_task(self._end(claim))
            _ending.add(ending)
            ending.add_done_callback(_ending.discard)
            await asyncio.shield(ending)

    hold.__doc__ = Claims.hold.__doc__

    async def _keep(self, claim: Claim) -> None:
        with _unless_closed(self._driver):
            await self._driver.run(self._logic.keep(claim))

    async def _end(self, claim: Claim) -> None:
        with _unless_closed(self._driver):
            await self._driver.run(self._logic.end(claim))


@contextmanager
def _unless_closed(driver: Driver | AsyncDriver) -> Iterator[None]:
    """Lets it pass that a client closed within the block can send nothing: the claim runs out."""
    try:
        yield
    except RuntimeError:
        if not driver.http.is_closed:
            raise


# The event loop itself keeps tasks only as long as somebody else does.
_ending: set[asyncio.Task[None]] = set()
