"""Workflows: JSON files of the workspace, whose nodes run one after the other in one transaction,
so that a killed server leaves a whole run or none."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.openwop.actions import ACTIONS
from memorywall.openwop.adapter import MemoryAdapter
from memorywall.openwop.families import FAMILIES, FIXTURES, is_offered
from memorywall.openwop.references import namespace_of
from memorywall.openwop.runs import Run, start
from memorywall.openwop.workspace import decode_file, find_file
from memorywall.records.errors import ResourceNotFoundError, ValidationError
from memorywall.service.requests.operation_context import OperationContext
from memorywall.settings import Settings
from memorywall.wire.openwop import StartRunRequest

FOLDER = "workflows/"
"""The folder of the workspace that has a file `ID.json` for each workflow."""
_ACTION = "memoryAction"
_NODES = ("core.noop", "core.identity")


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
    """Runs a workflow to its end, and returns the id of the run.

    Raises ResourceNotFoundError for an unknown workflow, ValidationError for one that this host
    does not execute, MemoryAccessError.
    """
    settings = context.service.settings
    workflow = await _find(context, asked.workflow_id)
    _check(settings, workflow, asked)
    agents = [node.agent for node in workflow.nodes if node.agent is not None]
    agent = msgspec.to_builtins(agents[-1]) if agents else None
    references = [one.memory_ref for one in agents if one.memory_ref is not None]
    run = await start(context, asked.workflow_id, asked, agent, references)
    run.agents = {one.id: one.agent.agent_id for one in workflow.nodes if one.agent is not None}
    variables, reads = dict(asked.inputs), dict[str, str | list[str]]()
    for node in workflow.nodes:
        started = {"nodeId": node.id, "typeId": node.type_id}
        await run.emit("node.started", started, node_id=node.id)
        outputs = _outputs(node, variables)
        if _ACTION in node.config:
            reference = node.agent.memory_ref if node.agent and node.agent.memory_ref else ""
            act = ACTIONS[str(node.config[_ACTION])]
            result = await act(run, MemoryAdapter(context, run), reference, node.id, node.config)
            variables |= result.variables
            reads |= result.reads
        completed = {"nodeId": node.id, **({"outputs": outputs} if outputs else {})}
        await run.emit("node.completed", completed, node_id=node.id)
    await _summarize(run, asked.workflow_id, len(workflow.nodes))
    await run.end(variables, reads)
    return run.id


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
            raise ValidationError("`inputs` lacks a variable that the workflow requires")
    for node in workflow.nodes:
        if node.type_id not in _NODES:
            raise ValidationError(f"this host executes nodes of the types {' and '.join(_NODES)}")
        if _ACTION in node.config:
            if not settings.openwop_test_seams:
                raise ValidationError("a node with `memoryAction` needs --openwop-test-seams")
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


async def _summarize(run: Run, workflow_id: str, nodes: int) -> None:
    """Writes the summary of the session, where memory is offered."""
    settings = run.context.service.settings
    if not is_offered(settings, FAMILIES[0]):
        return
    reference = f"runs/{workflow_id}"
    text = (
        f"Run {run.id} of a workflow completed {nodes} {'node' if nodes == 1 else 'nodes'} and"
        f" wrote {run.written} entries."
    )
    adapter = MemoryAdapter(run.context, run)
    place = reference if namespace_of(reference) else "runs"
    await adapter.put(place, text, ["source:session"])
