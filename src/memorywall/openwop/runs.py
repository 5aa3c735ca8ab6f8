"""Runs: sessions whose log are entries of the kind `run_event`, keyed by sequence."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.kinds.openwop import RUN_EVENT, RunEvent, Snapshot
from memorywall.kinds.sessions import Session
from memorywall.openwop.adapter import filter_of, read_recorded
from memorywall.openwop.families import emits
from memorywall.openwop.references import namespace_of, reference_of
from memorywall.records.clock import instant_to_milliseconds
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, Source
from memorywall.records.errors import ResourceConflictError, ResourceNotFoundError
from memorywall.records.feature_errors import (
    InvalidSequenceError,
    ReplayUnavailableError,
    SecretsUnavailableError,
)
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.governed_entries import read_value, read_values
from memorywall.service.entries.writes import create_new_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.sessions import life
from memorywall.sessions.access import load_session
from memorywall.sessions.stored import LoadedSession, make_entry, sequence_key
from memorywall.wire.openwop import RunEventResponse, RunResponse, StartRunRequest

MOST_REMEMBERED = 1_000
"""The most entries of its memories that the snapshot of a run names."""
_ENDS = {"run.completed": "completed", "run.failed": "failed"}
_AT_ONCE = 1_000
_MOST_EVENTS = 10**10 - 1
"""The largest number that a key of an event can have."""
_SECRET_RESOLVED = "memorywall.secret.resolved"  # noqa: S105 - the type of an event


@dataclass(slots=True)
class Run:
    """A run that is under way, in one transaction.

    last: the last event of its log
    sequence: the number of events so far
    agents: the ids of agents by the node that they execute
    written: the number of entries that it has written
    """

    context: OperationContext
    session: LoadedSession
    snapshot: Snapshot
    last: RunEvent
    sequence: int
    agents: dict[str | None, str] = field(default_factory=dict)
    written: int = 0

    @property
    def id(self) -> str:
        """The id of the run, which is that of its session."""
        return self.session.id

    async def secret(self, secret_id: str, value: str) -> None:
        """Registers a secret that the run has resolved, and notes its id in the log: from now on,
        whatever the run writes has a marker in place of the value, and it writes only where the
        secret is registered."""
        self.context.service.secrets.register(self.context.tenant, self.id, secret_id, value)
        if secret_id not in self.last.secrets:
            self.last = replace(self.last, secrets=(*self.last.secrets, secret_id))
            await self.emit(_SECRET_RESOLVED, {"secretId": secret_id})

    async def emit(
        self,
        kind: str,
        payload: dict[str, Any],
        *,
        node_id: str | None = None,
        about: Entry | None = None,
        **hidden: Any,
    ) -> None:
        """Appends an event to the log, unless its family is off.

        about: the entry whose erasure erases the event; default: none
        hidden: further fields of the event

        Raises SecretsUnavailableError.
        """
        context = self.context
        self.require_secrets()
        if not emits(context.service.settings, kind):
            return
        event = RunEvent(
            type=kind,
            payload=payload,
            node_id=node_id,
            at=context.now,
            secrets=self.last.secrets,
            **hidden,
        )
        sources = () if about is None else (Source(id=about.id, version=about.version),)
        subjects = () if about is None else about.subjects
        await store_event(context, self.session, self.sequence, event, sources, subjects)
        self.last = event
        self.sequence += 1

    def require_secrets(self) -> None:
        """Raises SecretsUnavailableError unless this process has every secret of the run."""
        context = self.context
        for one in self.last.secrets:
            if context.service.secrets.find(context.tenant, self.id, one) is None:
                raise SecretsUnavailableError(
                    "register the secrets of the run again, then repeat the request",
                    details={"runId": self.id, "secretIds": list(self.last.secrets)},
                )

    async def wrote(self, namespace: str, entry: Entry, node_id: str | None) -> None:
        """Attributes a write: one event, without content."""
        self.written += 1
        payload: dict[str, Any] = {
            "memoryRef": reference_of(namespace),
            "memoryId": entry.id,
            "tags": list(entry.tags),
        }
        if node_id is not None:
            payload["nodeId"] = node_id
        if node_id in self.agents:
            payload["agentId"] = self.agents[node_id]
        await self.emit("memory.written", payload, node_id=node_id, about=entry)

    async def end(
        self,
        variables: Mapping[str, Any],
        reads: Mapping[str, str | list[str]],
        error: dict[str, Any] | None = None,
        failed_node: str | None = None,
    ) -> None:
        """Appends the last event, and forgets the secrets of the run.

        error: `code` and `message` of a failure; default: the run has completed
        failed_node: the node that has failed; default: none
        """
        kind = "run.completed" if error is None else "run.failed"
        payload: dict[str, Any] = {} if error is None else {"error": error}
        if failed_node is not None:
            payload["failedNodeId"] = failed_node
        await self.emit(kind, payload, variables=dict(variables), reads=dict(reads))
        self.context.service.secrets.forget(self.context.tenant, self.id)


async def start(context: OperationContext, workflow: str, asked: StartRunRequest,
                agent: dict[str, Any] | None, references: Collection[str]) -> Run:  # fmt: skip
    """Starts a run with a snapshot of the memories that its nodes name.

    workflow: the id of the workflow
    agent: the `AgentRef` of its node, None without one

    Raises MemoryAccessError, ValidationError.
    """
    namespaces = [one for ref in dict.fromkeys(references) if (one := namespace_of(ref))]
    session = await _new_session(context, f"Run of {workflow}"[:256])
    position = context.service.ids.next("mem")
    ids = {one: await _newest(context, one) for one in namespaces}
    snapshot = Snapshot(position=position, started_at=context.now, ids=ids)
    given = {
        "inputs": asked.inputs,
        "agent": agent,
        "tags": [*asked.tags, *asked.options.tags],
        "metadata": asked.metadata | asked.options.metadata,
    }
    payload = {"workflowId": workflow, **{name: one for name, one in given.items() if one}}
    run = Run(context, session, snapshot, RunEvent(type="", at=context.now), 0)
    await run.emit("run.started", payload, workflow=workflow, snapshot=snapshot)
    return run


async def _new_session(context: OperationContext, title: str) -> LoadedSession:
    """Returns the session of a new run, which is closed: it gets no turns."""
    wanted = Session(agent_id="", title=title, status="closed", closed_reason="request")
    return (await life.create(context, wanted))[0]


async def resume(context: OperationContext, run_id: str) -> Run:
    """Returns a run that has not ended, to go on with it. Raises ResourceNotFoundError,
    ResourceConflictError, SecretsUnavailableError."""
    log = await load_log(context, run_id)
    if log.is_complete:
        raise ResourceConflictError("the run has ended; start another one")
    run = Run(context, log.session, log.snapshot, log.last, log.last_sequence + 1)
    run.require_secrets()
    return run


async def _newest(context: OperationContext, namespace: str) -> list[str]:
    wanted = filter_of(context.tenant, namespace, MOST_REMEMBERED)
    visible = await load_visibility(context, Verb.READ, wanted)
    found, _ = await context.transaction.entries.search(wanted, visible, context.now)
    return [one.id for one in found]


async def store_event(
    context: OperationContext,
    session: LoadedSession,
    sequence: int,
    event: RunEvent,
    sources: tuple[Source, ...] = (),
    subjects: tuple[str, ...] = (),
) -> None:
    """Stores an event of a run; the first one has the id that its snapshot names.

    sources: entries whose erasure erases the event
    subjects: the people whose erasure does so
    """
    first = event.snapshot
    entry_id = first.position if first is not None and sequence == 0 and not event.replays else None
    entry = make_entry(
        context, session, RUN_EVENT, sequence_key(sequence), event, entry_id=entry_id,
        field="inputs",
    )  # fmt: skip
    provenance = replace(entry.provenance, derived_from=sources)
    entry = replace(entry, subjects=subjects, provenance=provenance)
    await create_new_entry(context, entry)


async def load_log(context: OperationContext, run_id: str) -> RunLog:
    """Returns the log of a run, without its events. Raises ResourceNotFoundError."""
    session = await load_session(context, run_id, Verb.READ)
    first = await _page(context, session, -1, 1)
    if not first or first[0][1].snapshot is None:
        raise ResourceNotFoundError(
            "there is no such run; `POST /v1/runs` starts one, and its retention ends it"
        )
    ends = await context.transaction.entries.newest_of_session(
        run_id, session.owner, {RUN_EVENT.name: 1}
    )
    (entry,) = ends[RUN_EVENT.name]
    last = await read_value(context, entry, RunEvent)
    return RunLog(context, session, first[0][1], first[0][1].snapshot, last, int(entry.key))


async def _page(
    context: OperationContext, session: LoadedSession, after: int, most: int = _AT_ONCE
) -> Sequence[tuple[Entry, RunEvent]]:
    """Returns events of a run with a sequence greater than `after`, in order."""
    if after >= _MOST_EVENTS:
        return []
    start = sequence_key(after) if after >= 0 else ""
    entries = await context.transaction.entries.of_session(
        session.id, RUN_EVENT.name, session.owner, most, after=start
    )
    values = await read_values(context, entries, RunEvent)
    return list(zip(entries, values, strict=True))


@dataclass(frozen=True, slots=True)
class RunLog:
    """The log of a run, as it was read; it shows the memory that the run has read.

    first, last: its first and its last event
    snapshot: what the run reads besides its own writes
    last_sequence: the sequence of the last event
    """

    context: OperationContext
    session: LoadedSession
    first: RunEvent
    snapshot: Snapshot
    last: RunEvent
    last_sequence: int

    @property
    def id(self) -> str:
        """The run that has written: of a fork, the one whose log it repeats."""
        return self.first.replays or self.session.id

    @property
    def is_complete(self) -> bool:
        """Whether no event follows."""
        return self.last.type in _ENDS

    async def events(self, after: int = -1) -> list[tuple[Entry, RunEvent]]:
        """Returns all events with a sequence greater than `after`, in order."""
        found: list[tuple[Entry, RunEvent]] = []
        while page := await _page(self.context, self.session, after):
            found += page
            after = int(page[-1][0].key)
        return found

    def view(self, entry: Entry, event: RunEvent) -> RunEventResponse:
        """Returns an event as OpenWOP shows it."""
        return RunEventResponse(
            event_id=entry.id,
            run_id=self.session.id,
            type=event.type,
            payload=event.payload,
            timestamp=event.at,
            sequence=int(entry.key),
            node_id=msgspec.UNSET if event.node_id is None else event.node_id,
        )

    async def show(self) -> RunResponse:
        """Returns the run as its log shows it, with the entries that its variables name."""
        payload = self.first.payload
        return RunResponse(
            run_id=self.session.id,
            workflow_id=self.first.workflow,
            status=_ENDS.get(self.last.type, "running"),
            started_at=self.first.at,
            completed_at=self.last.at if self.is_complete else None,
            variables={**self.last.variables, **await self._entries()},
            agent=payload.get("agent"),
            error=self.last.payload.get("error"),
            tags=payload.get("tags", []),
            metadata=payload.get("metadata", {}),
        )

    async def _entries(self) -> dict[str, Any]:
        """Returns the variables that are entries. One that was erased is null."""
        reads = self.last.reads
        found = await read_recorded(self.context, _flatten(reads))
        return {
            name: found.get(named)
            if isinstance(named, str)
            else [found[one] for one in named if one in found]
            for name, named in reads.items()
        }

    async def check_replay(self, sequence: int) -> None:
        """Raises InvalidSequenceError for an event that the log does not have, and
        ReplayUnavailableError if what the run has read is not there any more."""
        if not 0 <= sequence <= self.last_sequence:
            raise InvalidSequenceError(
                "`fromSeq` must be the sequence of an event of the run",
                details={"fromSeq": sequence, "lastSequence": self.last_sequence},
            )
        age = self.context.moment - instant_to_milliseconds(self.snapshot.started_at)
        if timedelta(milliseconds=age) >= self.context.service.settings.openwop_retention:
            raise self._unavailable(sequence, "retention_expired")
        if not self.is_complete:
            raise ResourceConflictError("the run is not complete; fork it when it has ended")
        if await self._is_erased():
            raise self._unavailable(sequence, "event_log_unavailable")

    async def _is_erased(self) -> bool:
        """Returns whether events, or entries that the run has read or could read, are erased."""
        number = await self.context.transaction.entries.count_of_session(
            self.session.id, RUN_EVENT.name
        )
        ids = {*_flatten(self.last.reads)}
        for one in self.snapshot.ids.values():
            ids.update(one)
        found = await read_recorded(self.context, ids)
        return number != self.last_sequence + 1 or len(found) != len(ids)

    def _unavailable(self, sequence: int, reason: str) -> ReplayUnavailableError:
        details = {"fromSeq": sequence, "sourceRunId": self.session.id, "reason": reason}
        return ReplayUnavailableError("the run cannot be replayed any more", details=details)


def _flatten(reads: Mapping[str, str | list[str]]) -> list[str]:
    ids: list[str] = []
    for one in reads.values():
        ids += [one] if isinstance(one, str) else one
    return ids


async def fork(context: OperationContext, run_id: str, sequence: int) -> str:
    """Replays a run from its log, and returns the id of the new run: it has every recorded event,
    writes nothing to memory, and reads what the run has read.

    sequence: the event from which the replay begins; what is before it is history

    Raises ResourceNotFoundError, InvalidSequenceError, ReplayUnavailableError,
    ResourceConflictError.
    """
    log = await load_log(context, run_id)
    await log.check_replay(sequence)
    session = await _new_session(context, log.session.value.title)
    for place, (entry, event) in enumerate(await log.events()):
        if place == 0:
            event = replace(event, replays=log.id)
        sources = entry.provenance.derived_from
        await store_event(context, session, place, event, sources, entry.subjects)
    return session.id
