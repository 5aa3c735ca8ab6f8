"""LangGraph's store: each item is an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from memorywall.adapters.client_runner import ClientRunner, both_ways
from memorywall.adapters.langgraph.item_filter import as_where, check_filter, meets
from memorywall.adapters.langgraph.namespaces import (
    NamespaceNames,
    decode_name,
    encode_name,
    select_namespaces,
)
from memorywall.adapters.large_values import LargeValues, is_large, is_unfinished
from memorywall.exceptions import (
    MemoryConflictError,
    MemoryNotFoundError,
    ResourceNotFoundError,
    RuleError,
    ScanLimitError,
)
from memorywall.records.recall import MOST_HITS
from memorywall.records.tier import Tier
from memorywall.sdk.client_state import own_agent
from memorywall.sdk.effects import RequestGenerator as Script
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.retry import update

if TYPE_CHECKING:
    from memorywall.sdk.client import AsyncClient, Client

_UNSEARCHED = "unsearched"
"""The tag of an item that searches by a query do not find."""
_PAGE = 1_000
SubjectsOf = Callable[[tuple[str, ...], str], str | None]


class MemorywallStore(BaseStore):
    """A store that keeps items in memorywall: a namespace of labels is a namespace of entries, a
    key the key of an entry.

    client: a client of a server or of a store in this process, of either colour. That of
        `client.for_user(user)` keeps what is about this person.
    memory_type: the tier of the entries; default: `working`, which the agent owns. In `semantic`
        the agents that have access to a namespace share it, and its entries keep their versions.
    root: the first part of the namespaces of the entries; default: "langgraph"
    about: returns the person that an item is about from its namespace and key, None for nobody; the
        item is erased with the person. Default: what the client is bound to
    ttl: the default lifetime of items and whether reads prolong it; default: items stay. An item
        whose lifetime is over does not exist.
    max_age: seconds for which `get` may return an item as it was read, although others have changed
        it since; writes of this store are always seen. Default: 0, items as they are
    """

    supports_ttl = True

    def __init__(
        self,
        client: Client | AsyncClient,
        *,
        memory_type: Tier | str = Tier.WORKING,
        root: str = "langgraph",
        about: SubjectsOf | None = None,
        ttl: TTLConfig | None = None,
        max_age: float = 0,
    ) -> None:
        self.client = client
        self.ttl_config = ttl
        self.runner = ClientRunner(client)
        # Kept reads are those of this store and not of other users of the client.
        own = client.scoped() if max_age else client
        self._memory = own.memory.core
        self._values = LargeValues(self._memory)
        self._state = own.core._state
        self._tier = Tier(memory_type)
        self._about = about
        self._max_age = max_age
        self._kept: set[str] = set()
        subject = client.driver.binding.subject
        self._subject = subject if subject and "," not in subject else None
        self._names = NamespaceNames(root, is_bound=self._subject is not None)

    def _batch(self, ops: Iterable[Op]) -> Script[list[Result]]:
        """Runs operations: first those that read, then the last write of each item."""
        listed = list(ops)
        for op in listed:
            validate_op_namespace(op)
        results: list[Result] = [None] * len(listed)
        writes: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for place, op in enumerate(listed):
            if isinstance(op, PutOp):
                writes[op.namespace, op.key] = op
            else:
                results[place] = yield from self._read(op)
        for op in writes.values():
            yield from self._write(op)
        return results

    def _update(
        self,
        namespace: tuple[str, ...],
        key: str,
        change: Callable[[dict[str, Any]], Mapping[str, Any]],
        *,
        default: Mapping[str, Any] | None = None,
    ) -> Script[Item]:
        """Changes the value of an item with a function, and returns the item. Concurrent updates
        lose nothing: after another write the function gets the new value.

        change: a function from a value to a value, which may run several times
        default: the value that it gets if there is no item; default: a missing item is an error
        Raises MemoryNotFoundError, MemoryConflictError after many attempts.
        """
        validate_op_namespace(GetOp(namespace, key))
        entry = yield from self._values.update(
            self._names.encode(namespace),
            encode_name(key),
            change,
            self._tier,
            default=default,
            subjects=self._subjects(namespace, key),
        )
        _refuse_waiting(entry)
        return self._item(entry)

    batch, abatch = both_ways(_batch)
    update, aupdate = both_ways(_update)

    def user_of(self, *args: Any, **options: Any) -> None:
        """The client is bound already, or to nobody."""

    def _read(self, op: GetOp | SearchOp | ListNamespacesOp) -> Script[Result]:
        if isinstance(op, GetOp):
            return (yield from self._get(op))
        if isinstance(op, ListNamespacesOp):
            return (yield from self._list_namespaces(op))
        return cast(Result, (yield from self._search(op)))

    def _get(self, op: GetOp) -> Script[Item | None]:
        namespace, key = self._names.encode(op.namespace), encode_name(op.key)
        if self._max_age and namespace not in self._kept:
            yield from self._memory.cache(namespace, max_age=self._max_age)
            self._kept.add(namespace)
        entry = yield from self._memory.get(namespace, key, self._tier)
        is_own = entry is None or self._tier is not Tier.WORKING
        # A lookup also finds what other agents let this one read.
        if entry is None or not (is_own or entry.agent_id == (yield from own_agent(self._state))):
            return None
        if op.refresh_ttl:
            yield from self._refresh([entry])
        whole = yield from self._values.read(entry)
        return None if whole is None else self._item(whole)

    def _write(self, op: PutOp) -> Script[None]:
        namespace, key = self._names.encode(op.namespace), encode_name(op.key)
        if op.value is None:
            with suppress(MemoryNotFoundError):
                yield from self._memory.delete(namespace, key, self._tier)
            return
        options: dict[str, Any] = {
            "tags": [_UNSEARCHED] if op.index is False else [],
            "ttl": None if op.ttl is None else timedelta(minutes=op.ttl),
            "expires_at": None,
            "subjects": self._subjects(op.namespace, op.key),
        }
        if op.ttl is not None:
            del options["expires_at"]
        # What other agents have written meanwhile is replaced too, as by a put of LangGraph's.
        is_plain = self._tier is Tier.WORKING and not is_large(op.value)
        put = self._memory.put if is_plain else self._values.put
        _refuse_waiting((yield from put(namespace, key, op.value, self._tier, **options)))

    def _search(self, op: SearchOp) -> Script[list[SearchItem]]:
        wanted = op.filter or {}
        check_filter(wanted)
        conditions = {**(yield from self._conditions()), "namespace": self._prefix(op)}
        last = op.offset + op.limit
        if op.query:
            # Some of the hits may be left out here.
            limit = MOST_HITS if wanted else min(2 * last, MOST_HITS)
            found = yield from self._find(op.query, conditions, limit)
        else:
            found = yield from self._scan(wanted, conditions, last)
        chosen = [
            (entry, score)
            for entry, score in found
            if meets(entry.value, wanted) and not is_unfinished(entry)
        ][op.offset : last]
        if op.refresh_ttl:
            yield from self._refresh([entry for entry, _ in chosen])
        items = []
        for entry, score in chosen:
            try:
                whole = yield from self._values.read(entry)
            except ResourceNotFoundError:
                # The other items are found all the same, and this one by its beginning.
                whole = entry
            if whole is not None:
                items.append(self._search_item(whole, score))
        return items

    def _find(
        self, query: str, conditions: dict[str, Any], limit: int
    ) -> Script[list[tuple[MemoryEntry, float | None]]]:
        hits = yield from self._memory.search(query, **conditions, limit=limit)
        return [(one.entry, one.relevance) for one in hits if _UNSEARCHED not in one.entry.tags]

    def _scan(
        self, wanted: Mapping[str, Any], conditions: dict[str, Any], last: int
    ) -> Script[list[tuple[MemoryEntry, float | None]]]:
        """Returns the first `last` entries that meet a filter, the latest update first."""
        where = as_where(wanted)
        cursor: str | None = "*"
        found: list[tuple[MemoryEntry, float | None]] = []
        while cursor is not None and len(found) < last:
            limit = _PAGE if wanted else min(_PAGE, last - len(found))
            try:
                page = yield from self._memory.query(
                    **conditions, where=where, order_by="updated", cursor=cursor, limit=limit
                )
            except ScanLimitError:
                # The items are too many for a condition, and are read here instead.
                if where is None:
                    raise
                where = None
                continue
            found += [(one, None) for one in page if meets(one.value, wanted)]
            cursor = page.next_cursor
        return found

    def _list_namespaces(self, op: ListNamespacesOp) -> Script[list[tuple[str, ...]]]:
        conditions = op.match_conditions or ()
        prefix = next(
            (one.path for one in conditions if one.match_type == "prefix" and "*" not in one.path),
            (),
        )
        asked = {**(yield from self._conditions()), "namespace": f"{self._names.encode(prefix)}*"}
        found: list[tuple[str, ...]] = []
        after: str | None = None
        while True:
            page = yield from self._memory.entry_namespaces(
                **asked, after_namespace=after, limit=_PAGE
            )
            found += [self._names.decode(one.namespace) for one in page.namespaces]
            after = page.next
            if after is None:
                chosen = select_namespaces(found, conditions, op.max_depth)
                return chosen[op.offset : op.offset + op.limit]

    def _refresh(self, entries: Sequence[MemoryEntry]) -> Script[None]:
        """Begins the lifetimes of entries anew. Another write has done so as well."""
        for entry in entries:
            if entry.ttl is not None:
                with suppress(MemoryConflictError, MemoryNotFoundError):
                    yield from update(entry.id, entry.version, {"ttl": entry.ttl})

    def _conditions(self) -> Script[dict[str, Any]]:
        agent = None
        if self._tier is Tier.WORKING:
            agent = yield from own_agent(self._state)
        return {"memory_type": self._tier, "agent_id": agent, "about": self._subject}

    def _prefix(self, op: SearchOp) -> str:
        return f"{self._names.encode(op.namespace_prefix)}*"

    def _subjects(self, namespace: tuple[str, ...], key: str) -> list[str] | None:
        subject = None if self._about is None else self._about(namespace, key)
        return None if subject is None else [subject]

    def _item(self, entry: MemoryEntry) -> Item:
        return Item(**self._fields(entry))

    def _search_item(self, entry: MemoryEntry, score: float | None) -> SearchItem:
        return SearchItem(**self._fields(entry), score=score)

    def _fields(self, entry: MemoryEntry) -> dict[str, Any]:
        return {
            "value": entry.value,
            "key": decode_name(entry.key),
            "namespace": self._names.decode(entry.namespace),
            "created_at": datetime.fromisoformat(entry.created_at),
            "updated_at": datetime.fromisoformat(entry.updated_at),
        }


def _refuse_waiting(entry: MemoryEntry) -> None:
    """Raises RuleError for a write that a closed tier has not stored yet."""
    if entry.waits:
        raise RuleError("the item waits for the decision of a person", rule="admission")
