"""What of an agent's memory belongs into its context for a task (RFC-0015 section 6.3)."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack, overload

from memorywall.records.identifiers import is_clean
from memorywall.records.tier import Tier
from memorywall.sdk.client import AsyncClient, Client
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.filters import FilterArguments
from memorywall.sdk.memory import MemoryCore
from memorywall.sdk.models import MemoryEntry
from memorywall.wire.work import TaskResponse

LARGEST_PAGE = 1_000
_MOST_TAGS = 64
_LONGEST_TAG = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What an agent remembers that matters for a task.

    working: everything kept for the task, by earlier agents of it too
    episodic: the agent's own experience with the like
    semantic: shared knowledge
    """

    working: list[MemoryEntry]
    episodic: list[MemoryEntry]
    semantic: list[MemoryEntry]


@overload
def load_context(
    client: Client,
    task: TaskResponse,
    tags: Iterable[str] | None = None,
    episodic: int = 20,
    namespaces: Iterable[str] | None = None,
    *,
    semantic: int = 200,
) -> Context: ...


@overload
def load_context(
    client: AsyncClient,
    task: TaskResponse,
    tags: Iterable[str] | None = None,
    episodic: int = 20,
    namespaces: Iterable[str] | None = None,
    *,
    semantic: int = 200,
) -> Coroutine[Any, Any, Context]: ...


def load_context(
    client: Client | AsyncClient,
    task: TaskResponse,
    tags: Iterable[str] | None = None,
    episodic: int = 20,
    namespaces: Iterable[str] | None = None,
    *,
    semantic: int = 200,
) -> Context | Coroutine[Any, Any, Context]:
    """Loads what an agent should have before it works on a task. With an AsyncClient, await it.

    tags: experience with any of these is loaded; what the task requires of its agent and the
        `tags` of its metadata when left out. Where there is none, experience of all kinds.
    episodic: how many of those, the newest
    namespaces: where to look for knowledge, each whole or the beginning of names when it ends in
        `*`; wherever the agent may read when left out. State that agents share is no knowledge.
    semantic: how many pieces of knowledge at most, the newest first, up to 1,000
    """
    wanted_tags = _tags_of(task) if tags is None else list(dict.fromkeys(tags))
    places = None if namespaces is None else list(dict.fromkeys(namespaces))
    if isinstance(client, Client):
        core = client.memory._core
        return client._executor.run(_load(core, task, wanted_tags, episodic, places, semantic))
    twin = client.memory._core
    return client._executor.run(_load(twin, task, wanted_tags, episodic, places, semantic))


def every_entry(
    memory: MemoryCore, **wanted: Unpack[FilterArguments]
) -> RequestGenerator[list[MemoryEntry]]:
    """The entries on all pages of a query. One written meanwhile may be missing, none is twice."""
    found: dict[str, MemoryEntry] = {}
    offset = 0
    while True:
        page = yield from memory.query(limit=LARGEST_PAGE, offset=offset, **wanted)
        found.update((entry.id, entry) for entry in page)
        offset += len(page)
        if not page or offset >= page.total:
            return list(found.values())


def _load(
    memory: MemoryCore,
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
    memory: MemoryCore, tags: Sequence[str], most: int
) -> RequestGenerator[list[MemoryEntry]]:
    if most <= 0:
        return []
    wanted = FilterArguments(memory_type=Tier.EPISODIC)
    if tags:
        wanted["tags_any"] = tags
    return list((yield from memory.query(limit=most, **wanted)))


def _knowledge(
    memory: MemoryCore, namespaces: Sequence[str] | None, most: int
) -> RequestGenerator[list[MemoryEntry]]:
    found: dict[str, MemoryEntry] = {}
    for place in [None] if namespaces is None else namespaces:
        if len(found) >= most:
            break
        page = yield from memory.query(namespace=place, memory_type=Tier.SEMANTIC, limit=most)
        found.update((entry.id, entry) for entry in page)
    return list(found.values())[: max(most, 0)]


def _tags_of(task: TaskResponse) -> list[str]:
    """The words a task is known by, as far as they can be tags."""
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
