"""The session of OpenAI's Agents SDK over a session of memorywall: each item is a turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from agents.exceptions import AgentsException, UserError
from agents.items import TResponseInputItem
from agents.memory.session import OpenAIResponsesCompactionArgs, SessionABC
from agents.memory.session_settings import (
    SessionSettings,
    coerce_session_settings,
    resolve_session_limit,
)

from memorywall.adapters.client_runner import ClientRunner
from memorywall.adapters.named_sessions import NamedSessions, SessionKey
from memorywall.adapters.openai_agents.stored_items import as_items, as_turn
from memorywall.exceptions import MemorywallError, ResourceConflictError
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.session import SessionCore
from memorywall.wire.sessions import ResumeResponse
from memorywall.wire.turns import TurnResponse

if TYPE_CHECKING:
    from memorywall.sdk.client import AsyncClient, Client

Item = dict[str, Any]
_AT_ONCE, _BYTES_AT_ONCE = 100, 8 << 20
_MOST_REPLAYED = 1_000
COMPACTION_ITEMS = 20
"""The default of `compaction_items`."""


class MemorywallSession(SessionABC):
    """The history of a conversation, for `Runner.run(agent, input, session=...)`.

    session_id: the name of the conversation, unique among those of the client's agent with the
        person; any process that names it goes on with it
    client: a client of a server or of a store in this process, of either colour
    user: the person that the conversation is with; `client.forget(user)` erases it. Default:
        nobody, or the person of a client of `client.for_user`
    session_settings: the default limit of items that are returned; default: all items
    token_budget: the tokens by which a new conversation is summarized; a summary then stands for
        the earlier items, which stay stored. Default: all items are returned
    compaction_items: with a budget, the items since the newest summary after which
        `run_compaction`, which the Runner calls after each turn, asks for another; default: 20
    """

    def __init__(
        self,
        session_id: str,
        client: Client | AsyncClient,
        *,
        user: str | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        token_budget: int | None = None,
        compaction_items: int = COMPACTION_ITEMS,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        self.client = client
        self._sessions = NamedSessions("openai-agents", token_budget=token_budget)
        self._key = SessionKey(session_id, user)
        self._runner = ClientRunner(client)
        self._has_budget = token_budget is not None
        self._compaction_items = compaction_items

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the items in order, or the newest ones of them.

        limit: the most items; default: that of `session_settings`, or else all
        """
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None and most < 0:
            most = None
        load = self._load_summarized if self._has_budget else self._load_newest
        found = await self._run(lambda session: load(session, most), reads=True) or []
        return cast(list[TResponseInputItem], found if most is None else found[len(found) - most :])

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items at the end, up to 100 of them and 8 MiB all or none. A note of the error says
        how many of more items were added."""
        try:
            turns = [as_turn(cast(Item, one)) for one in items]
            parts = list(_parts_of(turns))
        except (TypeError, ValueError) as error:
            raise UserError(f"an item cannot be stored: {error}") from error

        def add(session: SessionCore) -> RequestGenerator[None]:
            added = 0
            for part in parts:
                try:
                    yield from session.add_many(part)
                except MemorywallError as error:
                    if added:
                        error.add_note(f"the first {added} of {len(turns)} items were added")
                    raise
                added += len(part)

        if turns:
            await self._run(add)

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes and returns the newest item; None without any."""
        return cast(TResponseInputItem | None, await self._run(_pop, reads=True))

    async def clear_session(self) -> None:
        """Removes all items."""
        await self._run(lambda session: session.clear(), reads=True)

    async def run_compaction(self, args: OpenAIResponsesCompactionArgs | None = None) -> None:
        """With a budget, makes a checkpoint, whose summary covers what does not fit, if there are
        `compaction_items` since the newest summary, or by `force`. Removes nothing."""
        if self._has_budget:
            is_forced = bool((args or {}).get("force"))
            await self._run(lambda session: self._compact(session, is_forced), reads=True)

    async def _run(
        self, action: Callable[[SessionCore], RequestGenerator[Any]], *, reads: bool = False
    ) -> Any:
        run = self._sessions.read if reads else self._sessions.write
        try:
            return await self._runner.await_(run(self._key, action), self._key.user)
        except MemorywallError as error:
            raise _as_error_of_agents(error) from error.__cause__

    def _load_newest(self, session: SessionCore, most: int | None) -> RequestGenerator[list[Item]]:
        if most == 0:
            return []
        turns = yield from session.turns(limit=most, newest_first=True)
        return (yield from _items_of(session, reversed(turns)))

    def _load_summarized(
        self, session: SessionCore, most: int | None
    ) -> RequestGenerator[list[Item]]:
        resumed: ResumeResponse = yield from session.resume(replay=_MOST_REPLAYED)
        items = yield from _items_of(session, resumed.turns)
        if resumed.summary:
            items = [{"role": "system", "content": resumed.summary}, *items]
        return items

    def _compact(self, session: SessionCore, is_forced: bool) -> RequestGenerator[None]:
        counts = (yield from session.refresh()).counts
        if is_forced or counts.last_sequence - counts.summarized_through >= self._compaction_items:
            yield from session.checkpoint(trigger="turn_count")


def _as_error_of_agents(error: MemorywallError) -> MemorywallError:
    """Returns an error that is one of the SDK as well, which the Runner gives the data of its
    run."""
    kind = type(error)
    error.__class__ = type(kind.__name__, (kind, AgentsException), {"__module__": kind.__module__})
    cast(AgentsException, error).run_data = None
    return error


def _parts_of(turns: Sequence[Item]) -> Iterator[list[Item]]:
    """Yields the turns that are added at once."""
    part: list[Item] = []
    size = 0
    for turn in turns:
        length = len(msgspec.json.encode(turn))
        if part and (len(part) == _AT_ONCE or size + length > _BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(turn)
        size += length
    yield part


def _items_of(session: SessionCore, turns: Any) -> RequestGenerator[list[Item]]:
    found: list[Item] = []
    for turn in turns:
        found += as_items((yield from _whole(session, turn)))
    return found


def _whole(session: SessionCore, turn: TurnResponse) -> RequestGenerator[TurnResponse]:
    """Returns a turn with its large parts, which are stored apart."""
    if not isinstance(turn.attachments, tuple):
        return turn
    (found,) = yield from session.turns(after=turn.sequence - 1, limit=1, whole=True)
    return found


def _pop(session: SessionCore) -> RequestGenerator[Item | None]:
    while True:
        newest = yield from session.turns(limit=1, newest_first=True)
        if not newest:
            return None
        items = as_items((yield from _whole(session, newest[0])))
        sequence = newest[0].sequence
        try:
            yield from session.remove_turns(sequence, last=sequence)
        except ResourceConflictError:
            # Another process has added or removed a turn.
            continue
        if len(items) > 1:
            # A turn that was added by others may say more than the last item.
            yield from session.add_many([as_turn(one) for one in items[:-1]])
        return items[-1] if items else None
