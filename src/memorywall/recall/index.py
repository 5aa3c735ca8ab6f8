"""What is held in memory to search in, and how it is kept current.

A slice is read from the store when it is first searched. From then on the tenant's log tells what
has changed: every search looks at what was logged since the one before, in the same snapshot in
which it asks what the caller may read. So a search sees all that was committed before it, whichever
process committed it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from memorywall.recall.behind import behind
from memorywall.recall.candidates import Score
from memorywall.recall.document import Fields
from memorywall.recall.embedders.protocol import Embedder
from memorywall.recall.loading import Held, Loader
from memorywall.recall.slice import Slice
from memorywall.recall.terms import Terms
from memorywall.recall.weights import DEFAULT_WEIGHTS, Weights
from memorywall.records.errors import UnavailableError
from memorywall.storage.port import Transaction
from memorywall.wall.administration import list_tenants
from memorywall.wall.door import Door

_log = logging.getLogger("memorywall.recall")
_COUNTED_EVERY = 0.5
_PATIENCE_SECONDS = 2.0
"""For the vector of a query, after which it is better to answer by words."""
_REST_MILLISECONDS = 5_000
_THREADS = 2
_LOOKED_AT_EVERY = 64
"""Searches after which it is looked how much memory is taken: what is held grows with writes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """How far embedding is behind, over all tenants.

    model: the embedder's model, None where there is none
    changes: of the log, that embedding has yet to look at
    """

    model: str | None
    changes: int


class Index:
    """The slices of all tenants, over one door."""

    def __init__(
        self, door: Door, embedder: Embedder | None = None, weights: Weights = DEFAULT_WEIGHTS
    ) -> None:
        self.door = door
        self.embedder = embedder
        self.weights = weights
        self.terms = Terms()
        self.fields = Fields(
            author=door.settings.recall_author_field, date=door.settings.recall_date_field
        )
        self._loader = Loader(
            door, self._make, self.terms, self.fields, None if embedder is None else embedder.model
        )
        self._held: dict[str, Held] = {}
        self._recent: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._searches = 0
        self._backlog = Backlog(model=None, changes=0)
        self._count_again = -math.inf
        self._rests_until = 0
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="memorywall-recall")

    @cached_property
    def score(self) -> Score:
        """The way to score. It is looked for at the first search, for numpy takes its time and its
        room, and is many times as fast where it is installed."""
        if find_spec("numpy") is None:
            from memorywall.recall import plain_scoring

            return plain_scoring.score
        from memorywall.recall import vector_scoring

        return vector_scoring.score

    def held(self, tenant: str) -> Held:
        """What is held of a tenant."""
        return self._held.setdefault(tenant, Held())

    async def slices(self, tenant: str, owners: Sequence[str], now: str) -> list[Slice]:
        """The slices of these owners, as of what is committed. The tenant's gate is held open for
        changing by the caller."""
        held = self.held(tenant)
        if not await self._loader.follow(tenant, held, now):
            for owner in held.slices:
                del self._recent[tenant, owner]
            held.slices.clear()
        loaded = False
        for owner in owners:
            slice_ = held.slices.get(owner)
            if slice_ is None or slice_.is_worn:
                slice_ = await self._loader.load(tenant, owner)
                if not held.slices:
                    held.position = slice_.position
                held.slices[owner] = slice_
                self._recent[tenant, owner] = None
                loaded = True
            self._recent.move_to_end((tenant, owner))
        if loaded:
            # What was logged while they were read.
            await self._loader.follow(tenant, held, now)
        wanted = [held.slices[owner] for owner in owners]
        for slice_ in wanted:
            slice_.expire(now)
            await self._loader.find_vectors(tenant, slice_, held.position)
            if slice_.vectors is not None:
                slice_.vectors.settle()
        self._searches += 1
        if loaded or self._searches % _LOOKED_AT_EVERY == 0:
            self._let_go(tenant, owners)
        return wanted

    async def backlog(self) -> Backlog:
        """How far embedding is behind, or was a moment ago: whoever may ask may ask often."""
        begun = time.monotonic()
        if begun > self._count_again:
            self._backlog = await self._count_backlog()
            took = time.monotonic() - begun
            # Many tenants take a while to count; it is to be a small part of the time. That nothing
            # is left is not said for longer than that, for somebody may wait for just this.
            least = _COUNTED_EVERY if self._backlog.changes else 0.0
            self._count_again = begun + max(least, 20 * took)
        return self._backlog

    async def _count_backlog(self) -> Backlog:
        embedder = self.embedder
        if embedder is None:
            return Backlog(model=None, changes=0)
        model, changes = embedder.model, 0

        for tenant in await list_tenants(self.door):

            async def script(transaction: Transaction, tenant: str = tenant) -> int:
                return await behind(transaction, tenant, model)

            changes += await self.door.store.read(tenant, script)
        return Backlog(model=model, changes=changes)

    def measure(self) -> dict[str, int]:
        """How much is held in memory."""
        slices = [one for held in self._held.values() for one in held.slices.values()]
        return {
            "slices": len(slices),
            "bytes": sum(one.size for one in slices),
            "entries": sum(len(one) for one in slices),
        }

    async def embed(self, texts: Sequence[str]) -> Any:
        """The vectors of a query and of what it is compared with, one row each.

        Raises UnavailableError, and TimeoutError when it takes too long; then the embedder is left
        alone for a while, so that not every search waits for it in vain.
        """
        assert self.embedder is not None  # noqa: S101 - asked by the caller
        if self.door.clock.now() < self._rests_until:
            raise UnavailableError("the embedder did not answer a moment ago")
        loop = asyncio.get_running_loop()
        embedding = loop.run_in_executor(self._threads, self.embedder.embed, texts)
        try:
            return await asyncio.wait_for(embedding, _PATIENCE_SECONDS)
        except (UnavailableError, TimeoutError):
            self._rests_until = self.door.clock.now() + _REST_MILLISECONDS
            raise

    async def used(self, added: Mapping[str, Mapping[str, int]]) -> None:
        """Lets what is held know that entries were used, by tenant; how often, the store tells."""
        for tenant, uses in added.items():
            held = self.held(tenant)
            if held.slices:
                counts = await self._loader.uses(tenant, uses)
                async with held.gate.changing():
                    for slice_ in held.slices.values():
                        slice_.set_uses(counts)

    def close(self) -> None:
        """Lets go of everything."""
        self._threads.shutdown(cancel_futures=True)
        self._held.clear()
        self._recent.clear()
        if self.embedder is not None:
            self.embedder.close()

    def _let_go(self, searched: str, owners: Sequence[str]) -> None:
        """Drops what was not searched for longest, until the rest is small enough; none of what is
        searched now, of this tenant or of others who are bringing theirs up to date."""
        excess = self.measure()["bytes"] - self.door.settings.recall_memory
        for tenant, owner in list(self._recent):
            if excess <= 0:
                return
            held = self._held[tenant]
            is_used = owner in owners if tenant == searched else held.gate.is_changing
            if not is_used:
                size = held.slices.pop(owner).size
                del self._recent[tenant, owner]
                excess -= size
                if size > self.door.settings.recall_memory:
                    # It is read anew whenever it is searched, which takes long.
                    _log.warning("a slice is larger than recall_memory", extra={"bytes": size})

    def _make(self, owner: str, position: int) -> Slice:
        """A new slice, empty."""
        slice_ = Slice(owner, position, self.weights)
        if self.embedder is not None:
            from memorywall.recall.vectors import Vectors

            slice_.vectors = Vectors(slice_.links, self.embedder.dimensions, self.weights)
        return slice_
