"""`client.memory.search`: search in memory by words and meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, TypeAlias

from memorywall.records.entry import Origin
from memorywall.records.recall import EntryOutcome, Mode, without_guidance
from memorywall.sdk.client_state import own_agent
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.filters import SHARED_TYPES, MemoryType, instant, tag_list, without_absent
from memorywall.sdk.models import DecodedSearch, MemoryEntry, ReshapedQuery, SearchResults
from memorywall.sdk.namespaces import NamespacesCore
from memorywall.sdk.retry import call
from memorywall.wire.search import ReshapeResponse

SearchMode: TypeAlias = Mode | Literal["hybrid", "lexical", "dense"]
_SCOPES = ("task_id", "intent_id", "session_id")
_NARROWED = ("memory_type", "agent_id", *_SCOPES)
WantedOutcome: TypeAlias = EntryOutcome | Literal["success", "failure", "correction", "any"]


class SearchCore(NamespacesCore):
    """The search operations, as request generators."""

    def search(
        self,
        query: str,
        *,
        context: str | None = None,
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
        about: str | None = None,
        user: str | None = None,
        origin: Origin | None = None,
        source: str | None = None,
        mode: SearchMode = Mode.HYBRID,
        outcome: WantedOutcome = EntryOutcome.ANY,
        limit: int | None = None,
        min_trust: float | None = None,
        dense_weight: float | None = None,
        as_of: datetime | str | None = None,
        valid_at: datetime | date | str | None = None,
        min_relevance: float | None = None,
        strict: bool = False,
        explain: bool = False,
    ) -> RequestGenerator[SearchResults]:
        """Returns the readable entries that match a query best, best first.

        Each hit has its `entry`, as `get` returns it, its `score`, which orders the hits of one
        search, and its `relevance`, the probability that it answers the query; a long text also has
        its best passage as `highlight`. The result has the `relevance` of the best hits together,
        and `answered`, whether that is enough to answer from them.

        query: free text, at most 2,000 characters; guidance from `reshape_query` is ignored
        context: the text before the query, such as the previous turn of a conversation, at most
            2,000 characters; its words and its meaning count less than those of the query
        namespace: a whole name, or a prefix that ends in `*`
        tags: all of them; tags_any: at least one of them
        kind, status, state: the kind and status of the value, and the state of the entry
        about: a person that the entry is about
        user: the person that the search is bound to, as by `client.for_user`
        origin, source: the origin of the content, and the URI that it was taken from
        mode: "hybrid" searches by words and by meaning, "lexical" and "dense" by one of them
        outcome: the outcome that an entry reports: "success", "failure", "correction" or "any"
        limit: the most hits; default 10, maximum 100
        min_trust: the least trust of an entry, from 0 to 1
        dense_weight: the weight of meaning in the mode "hybrid", from 0 to 100, if words have
            weight 1; default: that of the server
        as_of: RFC 3339 text or a datetime with a time zone; searches the versions of that instant.
            Later changed entries are found by words only, in tiers that keep versions
        valid_at: like `as_of`, a date, or "any"; only what holds at that instant, by `valid_from`
            and `valid_until` of the values; default: that of `as_of`, or now
        min_relevance: the least relevance of a hit, from 0 to 1; the result counts the others as
            `left_out`
        strict: no hits unless they probably answer the query; if the query names things that memory
            has by name, only what is about these
        explain: whether each hit contains the parts of its score and its relevance, as `explain`

        Raises ValidationError for a query without a word.
        """
        body = self._search_body(locals())
        return (yield from self._search("search_entries", body))

    def answer(
        self,
        question: str,
        *,
        user: str | None = None,
        namespace: str | None = None,
        limit: int | None = None,
        strict: bool = False,
    ) -> RequestGenerator[SearchResults]:
        """Returns what `client.recall` does."""
        asked = {"question": question, "user": user, "namespace": namespace, "limit": limit}
        body = without_absent({**asked, "strict": strict or None})
        return (yield from self._search("recall", body))

    def _search(self, operation: str, body: dict[str, Any]) -> RequestGenerator[SearchResults]:
        found = yield from call(operation, DecodedSearch, body=body)
        yield from self._learn_agent(hit.entry for hit in found.results)
        for hit in found.results:
            self._saw(hit.entry)
        return SearchResults(found)

    def reshape_query(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        namespace: str | None = None,
        limit: int | None = None,
    ) -> RequestGenerator[ReshapedQuery]:
        """Returns the query as text, with guidance from lessons appended if any apply.

        `guidance` of the result contains the parts and the ids of their entries. A `search` with
        the result ranks by the words of the query and not by those of the guidance.

        agent_id: the agent whose lessons apply; namespace: their namespace, in full; default: all
            readable lessons
        limit: the most lessons; default 3
        """
        asked = {"query": query, "agent_id": agent_id, "namespace": namespace, "limit": limit}
        reshaped = yield from call("reshape_query", ReshapeResponse, body=without_absent(asked))
        return ReshapedQuery(reshaped.query, guidance=reshaped.guidance)

    def _search_body(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the body of a request from the arguments of `search`, by name."""
        asked = {name: one for name, one in arguments.items() if name != "self"}
        given = {name: asked.pop(name) for name in _NARROWED}
        wanted = self._narrow(without_absent(given))
        scope = {name: wanted.pop(name) for name in _SCOPES if name in wanted}
        # An augmented query may be longer than a search allows.
        asked["query"] = without_guidance(asked["query"])
        for name in ("tags", "tags_any"):
            asked[name] = None if asked[name] is None else tag_list(asked[name])
        for name in ("as_of", "valid_at"):
            asked[name] = None if asked[name] is None else instant(asked[name])
        return without_absent({**asked, **wanted, "scope": scope or None})

    def _narrow(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Returns the conditions about owner and scope, with defaults if none is given."""
        return wanted

    def _learn_agent(self, entries: Iterable[MemoryEntry]) -> RequestGenerator[None]:
        """Requests the client's own agent if the operation needs it."""
        if any(entry.memory_type not in SHARED_TYPES for entry in entries):
            yield from own_agent(self._state)

    def _is_own(self, entry: MemoryEntry) -> bool:
        agent = self._state.agent
        return entry.memory_type in SHARED_TYPES or agent is None or entry.agent_id == agent

    def _saw(self, entry: MemoryEntry) -> None:
        # Another agent's entry is not the entry that `set` with the same name would update.
        if self._is_own(entry):
            self._state.versions.saw(entry)
