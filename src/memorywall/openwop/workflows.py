"""Workflows: JSON files of the workspace, whose nodes run one after the other in one transaction,
so that a killed server leaves a whole run or none."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.openwop.actions import ACTIONS, ActionResult
from memorywall.openwop.adapter import MemoryAdapter
from memorywall.openwop.families import FAMILIES_BY_NAME, FIXTURES, is_offered
from memorywall.openwop.references import namespace_of
from memorywall.openwop.runs import Run, start
from memorywall.openwop.workspace import decode_file, find_file
from memorywall.records.errors import (
    MemoryAccessError,
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    MemorywallError,
    ResourceConflictError,
    ResourceNotFoundError,
    ValidationError,
)
from memorywall.service.requests.operation_context import OperationContext
from memorywall.settings import Settings
from memorywall.wire.openwop import StartRunRequest, code_of

FOLDER = "workflows/"
"""The folder of the workspace that has a file `ID.json` for each workflow."""
_ACTION = "memoryAction"
_NODES = ("core.noop", "core.identity")
_REFUSALS = (MemoryAccessError, MemoryNotFoundError, MemoryCapacityError, MemoryConflictError,
             ResourceConflictError)  # fmt: skip
"""What the memory refuses to a node, so that its run fails. Bad input is refused before the run,
or with it."""


class Agent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An `AgentRef`."""

    agent_id: str
    name: str | None = None
    model_class: str | None = None
    memory_ref: str | None = None
    version: str | None = None


class Node(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A step of a workflow."""

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    type_id: str
    config: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    agent: Agent | None = None


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A variable of a workflow."""

    name: str
    required: bool = False


class RunWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a workflow that this host executes."""

    nodes: Annotated[list[Node], Meta(min_length=1, max_length=1_000)]
    variables: list[Variable] = []


async def run_workflow(context: OperationContext, asked: StartRunRequest) -> str:
    """Runs a workflow to its end, and returns the id of the run. It fails, with what it has written
    so far, if the memory refuses what a node does.

    Raises ResourceNotFoundError for an unknown workflow, ValidationError for one that this host
    does not execute.
    """
    settings = context.service.settings
    workflow = await _find(context, asked.workflow_id)
    _check(settings, workflow, asked)
    agents = [node.agent for node in workflow.nodes if node.agent is not None]
    agent = msgspec.to_builtins(agents[-1]) if agents else None
    references = [one.memory_ref for one in agents if one.memory_ref is not None]
    run = await start(context, asked.workflow_id, asked, agent, references)
    run.agents = {one.id: one.agent.agent_id for one in workflow.nodes if one.agent is not None}
    try:
        await _finish(run, workflow, asked)
    finally:
        # A run that is refused, or repeated by the store, has no end that forgets its secrets.
        context.service.secrets.forget(context.tenant, run.id)
    return run.id


async def _finish(run: Run, workflow: RunWorkflow, asked: StartRunRequest) -> None:
    """Executes the nodes of a run that has started, writes its summary, and ends it."""
    found = ActionResult(variables=dict(asked.inputs))
    failed, error = await _execute(run, workflow, found)
    count = len(workflow.nodes)
    outcome = f"completed {count} {'node' if count == 1 else 'nodes'}"
    try:
        await _summarize(run, asked.workflow_id, outcome if error is None else "failed")
    except _REFUSALS as refusal:
        error = error or refusal
    if isinstance(error, MemoryAccessError):
        run.context.service.refusals.note("openwop_start_run", error)
    await run.end(found.variables, found.reads, None if error is None else _view(error), failed)


async def _execute(
    run: Run, workflow: RunWorkflow, found: ActionResult
) -> tuple[str | None, MemorywallError | None]:
    """Executes the nodes until one fails. Returns the id of that node and why it has failed; None
    twice if all have completed.

    found: gets what the nodes leave in the variables of the run
    """
    for node in workflow.nodes:
        started = {"nodeId": node.id, "typeId": node.type_id}
        await run.emit("node.started", started, node_id=node.id)
        outputs = _outputs(node, found.variables)
        if node.agent is not None and node.agent.memory_ref and _ACTION in node.config:
            act, memory = ACTIONS[str(node.config[_ACTION])], MemoryAdapter(run.context, run)
            try:
                result = await act(run, memory, node.agent.memory_ref, node.id, node.config)
            except _REFUSALS as error:
                payload = {"nodeId": node.id, "error": _view(error)}
                await run.emit("node.failed", payload, node_id=node.id)
                return node.id, error
            found.variables.update(result.variables)
            found.reads.update(result.reads)
        completed = {"nodeId": node.id, **({"outputs": outputs} if outputs else {})}
        await run.emit("node.completed", completed, node_id=node.id)
    return None, None


def _view(error: MemorywallError) -> dict[str, Any]:
    """Returns an error as the events of a run show it."""
    return {"code": code_of(error), "message": error.detail}


async def _find(context: OperationContext, workflow_id: str) -> RunWorkflow:
    file = await find_file(context, f"{FOLDER}{workflow_id}.json")
    found: RunWorkflow | None = None if file is None else decode_file(file, RunWorkflow)
    if file is not None and found is None:
        raise ValidationError("the file of the workflow is no workflow; it needs `nodes`")
    config = FIXTURES.get(workflow_id)
    if found is None and config is not None and context.service.settings.openwop_test_seams:
        agent = Agent(agent_id="core.conformance.memory-agent", memory_ref=workflow_id)
        is_noop = workflow_id.endswith("noop")
        node = Node(
            id=workflow_id.removeprefix("conformance-"),
            type_id="core.noop" if is_noop else "core.identity",
            config=dict(config),
            inputs={"payload": {"type": "variable", "variableName": "payload"}},
            agent=agent if config else None,
        )
        found = RunWorkflow(nodes=[node])
    if found is None:
        raise ResourceNotFoundError("the workspace has no such workflow; put it there as a file")
    return found


def _check(settings: Settings, workflow: RunWorkflow, asked: StartRunRequest) -> None:
    """Raises ValidationError for a node that this host does not execute, and for a required
    variable without a value."""
    for one in workflow.variables:
        if one.required and one.name not in asked.inputs:
            raise ValidationError("`inputs` must have every variable that the workflow requires")
    for node in workflow.nodes:
        if node.type_id not in _NODES:
            raise ValidationError(f"`typeId` of each node must be one of: {', '.join(_NODES)}")
        if _ACTION in node.config:
            if not settings.openwop_test_seams:
                raise ValidationError(
                    "a node has `memoryAction`, which needs a server with --openwop-test-seams"
                )
            if str(node.config[_ACTION]) not in ACTIONS:
                raise ValidationError(f"`memoryAction` must be one of: {', '.join(ACTIONS)}")
            if node.agent is None or not node.agent.memory_ref:
                raise ValidationError("a node with `memoryAction` needs an agent with `memoryRef`")


def _outputs(node: Node, variables: dict[str, Any]) -> dict[str, Any]:
    """Returns what `core.identity` repeats: its inputs, which are constants or variables."""
    if node.type_id != "core.identity":
        return {}
    found = {}
    for name, source in node.inputs.items():
        value = source
        if isinstance(source, dict) and source.get("type") == "variable":
            value = variables.get(str(source.get("variableName")))
        if value is not None:
            found[name] = value
    return found


async def _summarize(run: Run, workflow_id: str, outcome: str) -> None:
    """Writes the summary of the session, where memory is offered: to the memory of the workflow, or
    to one of the caller's own if another agent has the first. Raises MemoryAccessError."""
    if not is_offered(run.context.service.settings, FAMILIES_BY_NAME["memory"]):
        return
    text = f"Run {run.id} of a workflow {outcome} and wrote {run.written} entries."
    for place in (f"runs/{workflow_id}", f"runs-of/{run.context.principal.id}"):
        if namespace_of(place) is not None:
            with suppress(MemoryAccessError):
                await MemoryAdapter(run.context, run).put(place, text, ["source:session"])
                return
    raise MemoryAccessError(
        "not allowed to write the summary of the run; use a key that may write memory"
    )
