"""`client.claims` in both colours: the one group that does something beside what is called."""

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
    """Claims keys of shared state, for a while."""

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
    """Claims keys of shared state, for a while."""

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
            # Whoever is cancelled within the block still gives back what it held.
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
    """Lets it pass that a client closed within the block can send nothing: the claim runs out."""
    try:
        yield
    except RuntimeError:
        if not executor.is_closed:
            raise


# The event loop itself keeps tasks only as long as somebody else does.
_ending: set[asyncio.Task[None]] = set()
