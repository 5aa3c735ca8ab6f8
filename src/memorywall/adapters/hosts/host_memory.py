"""The memory behind the hooks of a host: recalls for prompts, and stores the turns that wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memorywall.adapters.hosts.connection import HostConnection
from memorywall.adapters.hosts.injected_text import answers_among, injected_text
from memorywall.adapters.hosts.spool import Spool, SpooledTurn
from memorywall.adapters.hosts.turn_store import REFUSALS, chunks, store_turns

if TYPE_CHECKING:
    from memorywall.sdk.client import AsyncClient

_LONGEST_QUESTION = 2_000
_MOST_HITS = 30
"""Enough that earlier questions like this one do not take all places."""
_MOST_SHOWN = 5


@dataclass(slots=True)
class DrainCounts:
    """What has become of the turns of a spool.

    stored: now or before
    refused: not stored, and not kept any longer
    torn: lines of hooks that were killed before they had accepted them
    """

    stored: int = 0
    refused: int = 0
    torn: int = 0


class HostMemory:
    """The memory of a connection.

    client: of the connection, not bound to its person
    tell: gets sentences for the user's log, without any content
    """

    def __init__(
        self, connection: HostConnection, client: AsyncClient, tell: Callable[[str], None]
    ) -> None:
        self._connection = connection
        self._client = client
        self._tell = tell
        self._spool = Spool(connection.folder)

    async def recall(self, prompt: str, session: str) -> str | None:
        """Returns the text for the model, from other conversations; None if memory probably does
        not answer the prompt. Raises the errors of the SDK."""
        client = self._about(None)
        found = await client.recall(prompt[:_LONGEST_QUESTION], limit=_MOST_HITS)
        if not found.answered:
            return None
        own: set[str] = set()
        if any(hit.session_id for hit in found):
            named = await client.sessions.list(client_id=session, user=self._connection.user)
            own = {one.id for one in named.sessions}
        others = [hit for hit in found if hit.session_id not in own]
        return injected_text(answers_among(others, prompt)[:_MOST_SHOWN])

    async def drain(self) -> DrainCounts:
        """Stores the turns of the spool and empties it, unless another process does. Raises the
        errors of the SDK for a memory that cannot be reached; the turns stay then."""
        counts = DrainCounts()
        with self._spool.draining() as progress:
            is_empty = progress is None
            while progress is not None and not is_empty:
                content = self._spool.read()
                counts.torn = content.torn
                done = progress.read(content.turns)
                for turns in chunks(content.turns[done:]):
                    await self._store(turns, counts)
                    done += len(turns)
                    progress.write(content.turns[:done])
                is_empty = self._spool.truncate(content.size)
            if progress is not None:
                progress.write(())
        if counts.torn:
            self._tell(f"{counts.torn} incomplete lines of killed hooks were left out")
        return counts

    async def _store(self, turns: Sequence[SpooledTurn], counts: DrainCounts) -> None:
        host, user = self._connection.host, self._connection.user
        said_at = min(turn.said_at for turn in turns)
        try:
            await self._about(said_at).driver.run(store_turns(host, user, turns))
        except REFUSALS as error:
            if len(turns) > 1:
                for turn in turns:
                    await self._store([turn], counts)
                return
            counts.refused += 1
            self._tell(f"a turn of {said_at} is refused: {error.detail}")
        else:
            counts.stored += len(turns)

    def _about(self, said_at: str | None) -> AsyncClient:
        """Returns the client for the person of the connection."""
        user = self._connection.user
        return self._client if user is None else self._client.for_user(user, said_at=said_at)
