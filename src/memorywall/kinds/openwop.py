"""The kinds of OpenWOP: entries of agent memory, the log of a run, and files of the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.kinds.spec import Edge, KindSpec
from memorywall.records.tier import Tier

READS_MEMORY = "reads_memory"
"""The relation between the first event of a run and the namespaces of the memory that it reads."""


class _OpenWopValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
             forbid_unknown_fields=True):  # fmt: skip
    """A value of a kind."""


class AgentMemory(_OpenWopValue, frozen=True, kw_only=True):
    """The content of a `MemoryEntry` (OpenWOP agent-memory). It never changes."""

    content: Annotated[str, Meta(description="The memory, as text.")]


class KeptMemory(_OpenWopValue, frozen=True, kw_only=True):
    """What is left of an entry of agent memory for the snapshots that name it."""

    memory: str
    content: str
    created_at: str
    expires_at: str | None = None


class Snapshot(_OpenWopValue, frozen=True, kw_only=True):
    """What a run may read: entries from before its start.

    position: the id of the first event of the run; entries of its snapshot have smaller ids
    started_at: the instant of the start
    ids: the newest entries of each memory that the nodes of the run name, by its namespace
    """

    position: str
    started_at: str
    ids: dict[str, list[str]] = {}


class RunEvent(_OpenWopValue, frozen=True, kw_only=True):
    """An event of a run. `type`, `payload`, `node_id` and `at` are what OpenWOP shows.

    at: the instant of the event; a replay keeps it
    workflow: of the first event, the workflow
    snapshot: of the first event, what the run reads
    replays: of the first event of a fork, the run whose log it repeats
    variables: of the last event, the variables of the run
    reads: of the last event, the variables that are entries, or lists of entries, by their ids
    secrets: the ids of the secrets that the run has resolved up to this event
    """

    type: str
    payload: dict[str, Any] = {}
    node_id: str | None = None
    at: str
    workflow: str = ""
    snapshot: Snapshot | None = None
    replays: str | None = None
    variables: dict[str, Any] = {}
    reads: dict[str, str | list[str]] = {}
    secrets: tuple[str, ...] = ()


class WorkspaceFile(_OpenWopValue, frozen=True, kw_only=True):
    """A file of the workspace. Its path is the key of the entry."""

    content: str
    content_type: str = "text/markdown"


def _edges_of_event(event: RunEvent) -> Iterator[Edge]:
    for namespace in () if event.snapshot is None else event.snapshot.ids:
        yield Edge(READS_MEMORY, namespace)


AGENT_MEMORY = KindSpec(
    name="agent_memory",
    schema=AgentMemory,
    description="An entry of the memory of an OpenWOP agent, which never changes.",
    tier=Tier.SEMANTIC,
    evictable=False,
    texts=("content",),
    operations=("openwop_start_run", "openwop_put_memory"),
    text=lambda memory: memory.content,
    is_kept_for_runs=True,
)
KEPT_MEMORY = KindSpec(
    name="kept_memory",
    schema=KeptMemory,
    description="A removed entry of agent memory, for the replay of runs that could read it.",
    tier=Tier.EPISODIC,
    evictable=False,
    texts=("content",),
    operations=("openwop_delete_memory",),
    listed=False,
    is_searchable=False,
)
RUN_EVENT = KindSpec(
    name="run_event",
    schema=RunEvent,
    description="An event in the log of an OpenWOP run.",
    tier=Tier.SESSION,
    evictable=False,
    lifetime="",
    texts=("payload", "variables"),
    operations=("openwop_start_run", "openwop_fork_run"),
    removed_by=("delete_session",),
    listed=False,
    is_searchable=False,
    edges=_edges_of_event,
)
WORKSPACE_FILE = KindSpec(
    name="workspace_file",
    schema=WorkspaceFile,
    description="A file of the workspace of OpenWOP.",
    tier=Tier.SEMANTIC,
    evictable=False,
    text=lambda file: file.content,
)

OPENWOP_KINDS: tuple[KindSpec, ...] = (AGENT_MEMORY, KEPT_MEMORY, RUN_EVENT, WORKSPACE_FILE)
