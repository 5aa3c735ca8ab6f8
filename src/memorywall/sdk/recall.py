"""Searching memory by words and meaning: `client.memory.search`, in no colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from memorywall.records.recall import EntryOutcome, Mode
from memorywall.sdk.client_state import own_agent
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.filters import SHARED_TYPES, MemoryType, instant, tag_list, without_absent
from memorywall.sdk.governance import GovernanceCore
from memorywall.sdk.models import DecodedSearch, MemoryEntry, ReshapedQuery, SearchResults
from memorywall.sdk.retry import call
from memorywall.wire.recall import ReshapeResponse

SearchMode: TypeAlias = Mode | Literal["hybrid", "lexical", "dense"]
WantedOutcome: TypeAlias = EntryOutcome | Literal["success", "failure", "correction", "any"]


class RecallCore(GovernanceCore):
    """The operations that look through memory, as scripts for a driver."""

    def search(
        self,
        query: str,
        *,
        memory_type: MemoryType | None = None,
        agent_id: str | None = None,
        namespace: str | None = None,
        tags: Sequence[str] | str | None = None,
        tags_any: Sequence[str] | str | None = None,
        task_id: str | None = None,
        intent_id: str | None = None,
        session_id: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        state: str | None = None,
        subject: str | None = None,
        mode: SearchMode = Mode.HYBRID,
        outcome: WantedOutcome = EntryOutcome.ANY,
        limit: int | None = None,
        min_trust: float | None = None,
        as_of: datetime | str | None = None,
        explain: bool = False,
    ) -> RequestGenerator[SearchResults]:
        """The entries that answer a question best, of those that may be read, the best first.

        Each has its `entry`, as `get` gives it, and its `score`.

        namespace: matched whole, or at its beginning when it ends in `*`
        tags: all of them; tags_any: at least one of them
        kind, status, state: what its value means, and what the server holds of it
        subject: a person it is about
        mode: "hybrid" finds by words and by meaning, "lexical" and "dense" by one of them
        outcome: how what an entry tells of ended: "success", "failure", "correction" or "any"
        limit: how many at most, 10 if left out and never more than 100
        min_trust: how well an entry is founded at least, from 0 to 1
        as_of: RFC 3339 text or a datetime with a time zone; entries are found as they were then,
            those changed since by words alone, and only where their tier keeps versions
        explain: with each, as `explain`, what its score is made of

        Raises ValidationError for a question without a word in it.
        """
        wanted = self._narrow(
            without_absent(
                {
                    "memory_type": memory_type,
                    "agent_id": agent_id,
                    "task_id": task_id,
                    "intent_id": intent_id,
                    "session_id": session_id,
                }
            )
        )
        scope = {
            name: wanted.pop(name)
            for name in ("task_id", "intent_id", "session_id")
            if name in wanted
        }
        asked = {
            "query": query,
            **wanted,
            "namespace": namespace,
            "tags": None if tags is None else tag_list(tags),
            "tags_any": None if tags_any is None else tag_list(tags_any),
            "scope": scope or None,
            "kind": kind,
            "status": status,
            "state": state,
            "subject": subject,
            "mode": mode,
            "outcome": outcome,
            "limit": limit,
            "min_trust": min_trust,
            "as_of": None if as_of is None else instant(as_of),
            "explain": explain,
        }
        found = yield from call("search_entries", DecodedSearch, body=without_absent(asked))
        yield from self._learn_agent(hit.entry for hit in found.results)
        for hit in found.results:
            self._saw(hit.entry)
        return SearchResults(found.results, model=found.model, pending=found.pending)

    def reshape_query(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        namespace: str | None = None,
        limit: int | None = None,
    ) -> RequestGenerator[ReshapedQuery]:
        """The question as text, with guidance appended where earlier ones have taught some.

        Its `guidance` has what was appended piece by piece, and the entries that it is from.

        agent_id: whose experience, and namespace, whole: where; all that may be read when left out
        limit: how many pieces of guidance at most, 3 if left out
        """
        asked = {"query": query, "agent_id": agent_id, "namespace": namespace, "limit": limit}
        reshaped = yield from call("reshape_query", ReshapeResponse, body=without_absent(asked))
        return ReshapedQuery(reshaped.query, guidance=reshaped.guidance)

    def _narrow(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """The conditions about whose memory and which work, with those that are meant if none of
        them is given."""
        return wanted

    def _learn_agent(self, entries: Iterable[MemoryEntry]) -> RequestGenerator[None]:
        """Makes sure it is known whose memory is the client's own, where that matters."""
        if any(entry.memory_type not in SHARED_TYPES for entry in entries):
            yield from own_agent(self._state)

    def _is_own(self, entry: MemoryEntry) -> bool:
        agent = self._state.agent
        return entry.memory_type in SHARED_TYPES or agent is None or entry.agent_id == agent

    def _saw(self, entry: MemoryEntry) -> None:
        # Another agent's entry is not what `set` under the same name would change.
        if self._is_own(entry):
            self._state.versions.saw(entry)
