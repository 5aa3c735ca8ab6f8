"""Selects memory for an agent's context in a task (RFC-0015 section 6.3)."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack, overload

from memorywall.records.identifiers import is_clean
from memorywall.records.tier import Tier
from memorywall.sdk.client import AsyncClient, Client
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.entries import EntriesCore
from memorywall.sdk.filters import FilterArguments, tag_list
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.values import checked_list
from memorywall.wire.tasks import TaskResponse

LARGEST_PAGE = 1_000
_MOST_TAGS = 64
_LONGEST_TAG = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """The memory of an agent that concerns a task.

    working: all entries of the task, of earlier agents too
    episodic: the agent's own experience with similar tasks
    semantic: shared knowledge
    """

    working: list[MemoryEntry]
    episodic: list[MemoryEntry]
    semantic: list[MemoryEntry]


@overload
def load_context(
    client: Client,
    task: TaskResponse,
    tags: Iterable[str] | str | None = None,
    episodic: int = 20,
    namespaces: Iterable[str] | None = None,
    *,
    semantic: int = 200,
) -> Context: ...


@overload
def load_context(
    client: AsyncClient,
    task: TaskResponse,
    tags: Iterable[str] | str | None = None,
    episodic: int = 20,
    namespaces: Iterable[str] | None = None,
    *,
    semantic: int = 200,
) -> Coroutine[Any, Any, Context]: ...


def load_context(
    client: Client | AsyncClient,
    task: TaskResponse,
    tags: Iterable[str] | str | None = None,
    episodic: int = 20,
    namespaces: Iterable[str] | None = None,
    *,
    semantic: int = 200,
) -> Context | Coroutine[Any, Any, Context]:
    """Loads an agent's memory for a task. With an AsyncClient, await the result.

    tags: load episodic entries with any of these tags; default: the capabilities that the task
        requires and the `tags` of its metadata; without any tags, all episodic entries
    episodic: the number of episodic entries, newest first
    namespaces: semantic namespaces, each a whole name or a prefix that ends in `*`; default: all
        readable namespaces; shared state is excluded
    semantic: the most semantic entries, newest first, up to 1,000
    """
    wanted_tags = _tags_of(task) if tags is None else list(dict.fromkeys(tag_list(tags)))
    wanted_namespaces = None
    if namespaces is not None:
        wanted_namespaces = list(dict.fromkeys(checked_list("namespaces", namespaces)))
    loading = _load(client.memory.core, task, wanted_tags, episodic, wanted_namespaces, semantic)
    return client.driver.run(loading)


def every_entry(
    memory: EntriesCore, **wanted: Unpack[FilterArguments]
) -> RequestGenerator[list[MemoryEntry]]:
    """Returns the entries on all pages of a query. An entry that is written meanwhile may be
    missing; no entry appears twice."""
    found: dict[str, MemoryEntry] = {}
    offset = 0
    while True:
        page = yield from memory.query(limit=LARGEST_PAGE, offset=offset, **wanted)
        found.update((entry.id, entry) for entry in page)
        offset += len(page)
        if not page or offset >= page.total:
            return list(found.values())


def _load(
    memory: EntriesCore,
    task: TaskResponse,
    tags: Sequence[str],
    episodic: int,
    namespaces: Sequence[str] | None,
    semantic: int,
) -> RequestGenerator[Context]:
    return Context(
        working=(yield from every_entry(memory, task_id=task.id, memory_type=Tier.WORKING)),
        episodic=(yield from _experience(memory, tags, episodic)),
        semantic=(yield from _knowledge(memory, namespaces, semantic)),
    )


def _experience(
    memory: EntriesCore, tags: Sequence[str], most: int
) -> RequestGenerator[list[MemoryEntry]]:
    if most <= 0:
        return []
    wanted = FilterArguments(memory_type=Tier.EPISODIC)
    if tags:
        wanted["tags_any"] = tags
    return list((yield from memory.query(limit=most, **wanted)))


def _knowledge(
    memory: EntriesCore, namespaces: Sequence[str] | None, most: int
) -> RequestGenerator[list[MemoryEntry]]:
    found: dict[str, MemoryEntry] = {}
    for namespace in [None] if namespaces is None else namespaces:
        if len(found) >= most:
            break
        page = yield from memory.query(namespace=namespace, memory_type=Tier.SEMANTIC, limit=most)
        found.update((entry.id, entry) for entry in page)
    return list(found.values())[: max(most, 0)]


def _tags_of(task: TaskResponse) -> list[str]:
    """Returns the words that describe a task, if they are valid tags."""
    given = task.metadata.get("tags")
    words: Iterable[object] = (given,) if isinstance(given, str) else given or ()
    if not isinstance(words, list | tuple):
        words = ()
    tags = dict.fromkeys(
        word
        for word in (*task.capabilities_required, *words)
        if isinstance(word, str) and _can_be_tag(word)
    )
    return list(tags)[:_MOST_TAGS]


def _can_be_tag(word: str) -> bool:
    return is_clean(word, _LONGEST_TAG) and "," not in word
