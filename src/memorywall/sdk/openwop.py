"""`client.openwop`: the runs and the memory of an OpenWOP host."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memorywall.records.errors import MemoryNotFoundError
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.retry import call
from memorywall.wire.openwop import (
    FileResponse,
    MemoryEntryResponse,
    MemoryListResponse,
    PollResponse,
    RunEventResponse,
    RunResponse,
    StartedRunResponse,
)


class OpenWopCore:
    """The operations of OpenWOP, as request generators."""

    def discover(self) -> RequestGenerator[dict[str, Any]]:
        """Returns what the host offers: the document at /.well-known/openwop."""
        return call("openwop_discover", dict[str, Any])

    def install(self, name: str, workflow: Mapping[str, Any]) -> RequestGenerator[FileResponse]:
        """Puts a workflow into the workspace, as `workflows/NAME.json`.

        workflow: `nodes`, each with `id`, `typeId`, `config` and `agent`
        """
        body = {"content": json.dumps(workflow), "contentType": "application/json"}
        return call("openwop_put_file", FileResponse, body=body, path=f"workflows/{name}.json")

    def run(
        self, workflow_id: str, inputs: Mapping[str, Any] | None = None
    ) -> RequestGenerator[RunResponse]:
        """Runs a workflow of the workspace, and returns the run.

        inputs: the variables that the workflow requires; default: none
        """
        body = {"workflowId": workflow_id, "inputs": dict(inputs or {})}
        started = yield from call("openwop_start_run", StartedRunResponse, body=body)
        return (yield from self.get(started.run_id))

    def get(self, run_id: str) -> RequestGenerator[RunResponse]:
        """Returns a run. Raises MemoryNotFoundError."""
        return call("openwop_get_run", RunResponse, run_id=run_id)

    def events(self, run_id: str, after: int = -1) -> RequestGenerator[Sequence[RunEventResponse]]:
        """Returns the events of a run with a sequence greater than `after`, from 0."""
        query = {"lastSequence": after}
        found = yield from call("openwop_poll_run_events", PollResponse, run_id=run_id, query=query)
        return found.events

    def fork(self, run_id: str, from_seq: int = 0) -> RequestGenerator[RunResponse]:
        """Replays a run from its log, and returns the new run."""
        body = {"fromSeq": from_seq, "mode": "replay"}
        started = yield from call("openwop_fork_run", StartedRunResponse, run_id=run_id, body=body)
        return (yield from self.get(started.run_id))

    def list(
        self,
        memory_ref: str,
        *,
        limit: int = 0,
        tag: str | None = None,
        query: str | None = None,
        run_id: str | None = None,
    ) -> RequestGenerator[Sequence[MemoryEntryResponse]]:
        """Returns the entries of a memory, the newest first; with `query`, the best first.

        limit: 0 for as many as the host shows
        run_id: the run whose view is shown, without `query`; default: the present state
        """
        asked = {"limit": limit, "tag": tag, "query": query, "runId": run_id}
        found = yield from call(
            "openwop_list_memory", MemoryListResponse, memory_ref=memory_ref, query=asked
        )
        return found.entries

    def read(
        self, memory_ref: str, memory_id: str, *, run_id: str | None = None
    ) -> RequestGenerator[MemoryEntryResponse | None]:
        """Returns an entry of a memory, None if it is missing.

        run_id: the run whose view is shown; default: the present state
        """
        try:
            return (
                yield from call(
                    "openwop_get_memory",
                    MemoryEntryResponse,
                    memory_ref=memory_ref,
                    memory_id=memory_id,
                    query={"runId": run_id},
                )
            )
        except MemoryNotFoundError:
            return None


class RunMemoryCore:
    """The memory that a run reads: its snapshot and its own writes. `ctx.memory` of OpenWOP."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id

    def list(
        self, memory_ref: str, *, limit: int = 0, tag: str | None = None
    ) -> RequestGenerator[Sequence[MemoryEntryResponse]]:
        """Returns the entries of a memory, the newest first. Raises MemoryNotFoundError without
        such a run.

        limit: 0 for as many as the host shows
        """
        return OpenWopCore().list(memory_ref, limit=limit, tag=tag, run_id=self._run_id)

    def get(self, memory_ref: str, memory_id: str) -> RequestGenerator[MemoryEntryResponse | None]:
        """Returns an entry of a memory, None if it is missing."""
        return OpenWopCore().read(memory_ref, memory_id, run_id=self._run_id)


class _RunMemoryMethods:
    list = method(RunMemoryCore.list)
    get = method(RunMemoryCore.get)


class RunMemory(_RunMemoryMethods, Facade[RunMemoryCore]):
    """Reads the memory of a run."""


class AsyncRunMemory(_RunMemoryMethods, AsyncFacade[RunMemoryCore]):
    """Reads the memory of a run."""


class _OpenWopMethods:
    discover = method(OpenWopCore.discover)
    install = method(OpenWopCore.install)
    run = method(OpenWopCore.run)
    get = method(OpenWopCore.get)
    events = method(OpenWopCore.events)
    fork = method(OpenWopCore.fork)
    list = method(OpenWopCore.list)
    read = method(OpenWopCore.read)


class OpenWopClient(_OpenWopMethods, Facade[OpenWopCore]):
    """Runs workflows, and reads the memory of agents."""

    def memory(self, run_id: str) -> RunMemory:
        """Returns what a node of a run reads: the memory at the start of the run and the run's own
        writes."""
        return RunMemory(RunMemoryCore(run_id), self.driver)


class AsyncOpenWopClient(_OpenWopMethods, AsyncFacade[OpenWopCore]):
    """Runs workflows, and reads the memory of agents."""

    def memory(self, run_id: str) -> AsyncRunMemory:
        """Returns what a node of a run reads: the memory at the start of the run and the run's own
        writes."""
        return AsyncRunMemory(RunMemoryCore(run_id), self.driver)
