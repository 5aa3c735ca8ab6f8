"""The functions of the operations of OpenWOP: each reads the request, calls a rule, and makes the
response."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import closing, suppress
from functools import partial
from typing import Any

from memorywall.openwop import agents, workspace
from memorywall.openwop.adapter import MemoryAdapter, MemoryView, view
from memorywall.openwop.binding import multi_transaction_route, route
from memorywall.openwop.compaction import compact
from memorywall.openwop.families import FAMILIES_BY_NAME, discovery, require_family
from memorywall.openwop.runs import RunLog, fork, load_log
from memorywall.openwop.search import search_memory
from memorywall.openwop.workflows import run_workflow
from memorywall.records.errors import (
    MemorywallError,
    RequestError,
    ResourceNotFoundError,
    ValidationError,
)
from memorywall.service.erasure.subject_erasure import erase_subject
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire import openwop as wire
from memorywall.wire.results import ResultStream

_PAUSE = 15.0
"""Seconds after which a stream without events sends a sign of life."""


@multi_transaction_route("openwop_discover")
async def discover(transactions: OperationTransactions) -> dict[str, Any]:
    return discovery(transactions.service.settings)


@route("openwop_start_run", is_long=True, shows=lambda started: (started.run_id,))
async def start_run(context: OperationContext, call: OperationCall) -> wire.StartedRunResponse:
    return wire.StartedRunResponse(run_id=await run_workflow(context, call.body))


@route("openwop_get_run")
async def get_run(context: OperationContext, call: OperationCall) -> wire.RunResponse:
    return await (await load_log(context, call.path["run_id"])).show()


@multi_transaction_route("openwop_list_run_events")
async def list_run_events(
    transactions: OperationTransactions,
) -> wire.RunEventsResponse | ResultStream:
    call = transactions.call
    run_id = call.path["run_id"]
    after = -1 if call.resume_after is None else call.resume_after
    if call.wants_stream:
        first = await transactions.read_long(_read_events, run_id, after)
        return ResultStream(_follow(transactions, run_id, after, first), "events", endless=True)
    events, _ = await transactions.read_long(_read_events, run_id, -1)
    return wire.RunEventsResponse(events=events)


async def _read_events(
    context: OperationContext, run_id: str, after: int
) -> tuple[list[wire.RunEventResponse], bool]:
    """Returns the events of a run after one, and whether no event follows."""
    log = await load_log(context, run_id)
    events = [log.view(*one) for one in await log.events(after)]
    return events, log.is_complete


async def _follow(
    transactions: OperationTransactions,
    run_id: str,
    after: int,
    first: tuple[list[wire.RunEventResponse], bool],
) -> AsyncGenerator[list[Any], None]:
    """Yields the events of a run until its end, or until the key or the run is gone."""
    with (
        suppress(MemorywallError),
        closing(transactions.service.store.watch(transactions.principal.tenant)) as watch,
    ):
        events, is_complete = first
        while True:
            yield events
            if is_complete:
                return
            after = events[-1].sequence if events else after
            await watch.changed(_PAUSE)
            await transactions.call.reauthenticate()
            events, is_complete = await transactions.read_long(_read_events, run_id, after)


@route("openwop_poll_run_events", is_long=True)
async def poll_run_events(context: OperationContext, call: OperationCall) -> wire.PollResponse:
    events, is_complete = await _read_events(context, call.path["run_id"], call.query.last_sequence)
    return wire.PollResponse(events=events, is_complete=is_complete)


@route("openwop_fork_run", is_long=True)
async def fork_run(context: OperationContext, call: OperationCall) -> wire.StartedRunResponse:
    run_id = await fork(context, call.path["run_id"], call.body.from_seq)
    return wire.StartedRunResponse(run_id=run_id)


@route("openwop_list_agents")
async def list_agents(context: OperationContext, call: OperationCall) -> wire.AgentsResponse:
    return await agents.list_agents(context)


@route("openwop_get_agent")
async def get_agent(context: OperationContext, call: OperationCall) -> dict[str, Any]:
    return await agents.find_agent(context, call.path["agent_id"])


@multi_transaction_route("openwop_list_memory", "openwop_list_test_memory")
async def list_memory(transactions: OperationTransactions) -> wire.MemoryListResponse:
    reference, asked = transactions.call.path["memory_ref"], transactions.call.query
    if asked.query is not None and asked.run_id is not None:
        raise RequestError("`query` searches what is there now; leave it out, or `runId`")
    if asked.query is None:
        found = await transactions.read(_list_memory, reference, asked)
    else:
        require_family(transactions.service.settings, FAMILIES_BY_NAME["memory.search"])
        found = await search_memory(transactions, reference, asked)
    return wire.MemoryListResponse(entries=list(found))


async def _list_memory(context: OperationContext, reference: str, asked: wire.MemoryQuery) -> Any:
    memory = MemoryView(context, await _reader(context, asked.run_id))
    return await memory.list(reference, asked.limit, asked.tag)


async def _reader(context: OperationContext, run_id: str | None) -> RunLog | None:
    """Returns the run whose view is asked for; None for the present state. Raises
    ResourceNotFoundError."""
    return None if run_id is None else await load_log(context, run_id)


@route("openwop_get_memory", "openwop_get_test_memory")
async def get_memory(context: OperationContext, call: OperationCall) -> wire.MemoryEntryResponse:
    memory = MemoryView(context, await _reader(context, call.query.run_id))
    found = await memory.get(call.path["memory_ref"], call.path["memory_id"])
    if found is None:
        raise ResourceNotFoundError(
            "the memory has no such entry; list it for the ids of those that it has"
        )
    return found


@route("openwop_put_memory", "openwop_put_test_memory")
async def put_memory(context: OperationContext, call: OperationCall) -> wire.MemoryEntryResponse:
    return await _put(MemoryAdapter(context), call.path["memory_ref"], call.body)


async def _put(
    adapter: MemoryAdapter, reference: str, asked: wire.PutMemoryRequest
) -> wire.MemoryEntryResponse:
    entry = await adapter.put(reference, asked.content, asked.tags, asked.expires_at)
    return view(entry)


@route("openwop_delete_memory", "openwop_delete_test_memory")
async def delete_memory(context: OperationContext, call: OperationCall) -> None:
    await MemoryAdapter(context).delete(call.path["memory_ref"], call.path["memory_id"])


@route("openwop_list_files")
async def list_files(context: OperationContext, call: OperationCall) -> wire.FileListResponse:
    found = await workspace.list_files(context, as_of=await _start(context, call.query.run_id))
    view = partial(workspace.view_file, with_content=False)
    return wire.FileListResponse(files=await context.build(view, found))


@route("openwop_get_file")
async def get_file(context: OperationContext, call: OperationCall) -> wire.FileResponse:
    asked = call.query
    if asked.version is not None and asked.run_id is not None:
        raise RequestError("`version` and `runId` cannot be combined; give one of them")
    as_of = await _start(context, asked.run_id)
    found = await workspace.load_file(context, call.path["path"], asked.version, as_of)
    return workspace.view_file(found)


async def _start(context: OperationContext, run_id: str | None) -> str | None:
    """Returns the instant of the start of a run; None for the present state. Raises
    ResourceNotFoundError."""
    run = await _reader(context, run_id)
    return None if run is None else run.snapshot.started_at


@route("openwop_put_file")
async def put_file(context: OperationContext, call: OperationCall) -> wire.FileResponse:
    asked = call.body
    return await workspace.put_file(
        context, call.path["path"], asked.content, asked.content_type, call.if_match
    )


@route("openwop_delete_file")
async def delete_file(context: OperationContext, call: OperationCall) -> None:
    await workspace.delete_file(context, call.path["path"], call.if_match)


@route("openwop_compact_memory", "openwop_test_compact", is_long=True)
async def compact_memory(context: OperationContext, call: OperationCall) -> wire.CompactionResponse:
    return await compact(context, call.body.memory_ref)


@route("openwop_test_seed", is_long=True)
async def seed(context: OperationContext, call: OperationCall) -> wire.MemoryListResponse:
    adapter, reference = MemoryAdapter(context), call.body.memory_ref
    stored = [await _put(adapter, reference, one) for one in call.body.entries]
    return wire.MemoryListResponse(entries=stored)


@multi_transaction_route("openwop_test_secret")
async def register_secret(transactions: OperationTransactions) -> dict[str, str]:
    asked, secrets = transactions.call.body, transactions.service.secrets
    secrets.register(transactions.principal.tenant, None, asked.secret_id, asked.value)
    return {"secretId": asked.secret_id}


@multi_transaction_route("openwop_test_drop_secret")
async def drop_secret(transactions: OperationTransactions) -> None:
    secret_id, secrets = transactions.call.path["secret_id"], transactions.service.secrets
    if not secrets.forget(transactions.principal.tenant, None, secret_id):
        raise ResourceNotFoundError("there is no such secret; register it first")


@multi_transaction_route("openwop_test_forget")
async def forget(transactions: OperationTransactions) -> wire.ForgottenResponse:
    asked, tenant = transactions.call.body, transactions.principal.tenant
    is_entry = asked.memory_ref is not None and asked.memory_id is not None
    if is_entry == (asked.subject is not None):
        raise ValidationError("name `memoryRef` and `memoryId`, or `subject`")
    if asked.subject is not None:
        gone = await erase_subject(transactions.service, tenant, asked.subject)
        return wire.ForgottenResponse(forgotten=gone.entries.total())
    await transactions.write(_forget_entry, asked.memory_ref, asked.memory_id)
    return wire.ForgottenResponse(forgotten=1)


async def _forget_entry(context: OperationContext, reference: str, memory_id: str) -> None:
    await MemoryAdapter(context).delete(reference, memory_id)
