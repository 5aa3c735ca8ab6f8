"""Parses a workflow file strictly, and reports all its problems at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

from memorywall.records.identifiers import normalize_name
from memorywall.records.task import MemoryPolicy
from memorywall.workflow import names
from memorywall.workflow.errors import Diagnostic, WorkflowError
from memorywall.workflow.mapping_reader import LocatedText, MappingReader, locate_text
from memorywall.workflow.model import (
    AgentBlock,
    EpisodicMemoryBlock,
    EvictionPolicy,
    MemoryBlock,
    Permissions,
    PlanStep,
    SemanticNamespace,
    Workflow,
    WorkingMemoryBlock,
)
from memorywall.workflow.order import in_order
from memorywall.workflow.preload import YAML_LIMIT, load_namespace, read_text
from memorywall.workflow.references import WrittenStep, check_references
from memorywall.workflow.tree import Diagnostics, SyntaxNode
from memorywall.workflow.yaml_text import parse_yaml

MOST_STEPS = 1_000
_MOST_KILOBYTES = 1_000_000_000
_EVICTION_POLICIES: tuple[EvictionPolicy, ...] = get_args(EvictionPolicy)
_PERMISSIONS: tuple[Permissions, ...] = get_args(Permissions)


def read_workflow(path: str | os.PathLike[str]) -> Workflow:
    """The workflow in a file, with the entries of its semantic namespaces.

    Nothing is imported or run. Raises WorkflowError with all problems of the file and of the files
    that it loads.
    """
    file = Path(path)
    found: list[Diagnostic] = []
    diagnostics = Diagnostics(str(file), found)
    text = read_text(file, YAML_LIMIT, diagnostics)
    root = parse_yaml(text, diagnostics) if text is not None else None
    workflow = _workflow(file, root, diagnostics) if root is not None else None
    if workflow is None:
        # Problems of the workflow come before problems of the files that it loads.
        raise WorkflowError(sorted(found, key=lambda one: (one.file != str(file), one)))
    return workflow


def _workflow(file: Path, root: SyntaxNode, diagnostics: Diagnostics) -> Workflow | None:
    top = MappingReader(root, "", diagnostics)
    if not top.is_there:
        return None
    name = top.located_text("name", names.name, required=True)
    version = top.located_text("version", names.name)
    memory = _memory(top.section("memory"), file, diagnostics)
    agents = _agents(top.section("agents", required=True), memory.episodic_memory, diagnostics)
    plan = [
        _step(MappingReader(node, where, diagnostics), agents, memory.working_memory)
        for where, node in top.items("plan", required=True, most=MOST_STEPS)
    ]
    top.finish()
    check_references(plan, agents, diagnostics)
    if diagnostics.has_problems:
        return None
    return Workflow(
        path=file,
        name=name.text if name else "",
        version=version.text if version else None,
        memory=memory,
        agents=agents,
        plan=in_order([written.step for written in plan]),
    )


def _memory(memory: MappingReader, file: Path, diagnostics: Diagnostics) -> MemoryBlock:
    working = memory.section("working_memory")
    episodic = memory.section("episodic_memory")
    block = MemoryBlock(
        semantic_namespaces=_namespaces(memory, file, diagnostics),
        working_memory=WorkingMemoryBlock(
            archive_on_completion=working.flag("archive_on_completion", True),
            max_entries_per_task=working.count("max_entries_per_task"),
        ),
        episodic_memory=EpisodicMemoryBlock(
            capacity_per_agent=episodic.count("capacity_per_agent"),
            eviction_policy=episodic.choice("eviction_policy", _EVICTION_POLICIES, "lru"),
        ),
    )
    for section in (working, episodic, memory):
        section.finish()
    return block


def _namespaces(
    memory: MappingReader, file: Path, diagnostics: Diagnostics
) -> tuple[SemanticNamespace, ...]:
    found: dict[str, SemanticNamespace] = {}
    for where, node in memory.items("semantic_namespaces"):
        name, given = _namespace(node, where, diagnostics)
        if name is None:
            continue
        if name.text in found:
            diagnostics.add(name.at, name.where, "occurs twice in this list")
        else:
            found[name.text] = load_namespace(name, given, file, diagnostics)
    return tuple(found.values())


def _namespace(
    node: SyntaxNode, where: str, diagnostics: Diagnostics
) -> tuple[LocatedText | None, LocatedText | None]:
    """The name of a namespace, and the path of its file if given."""
    if not isinstance(node.content, dict):
        return locate_text(node, where, names.namespace, diagnostics), None
    section = MappingReader(node, where, diagnostics)
    name = section.located_text("name", names.namespace, required=True)
    given = section.located_text("from", names.name, required=True)
    section.finish()
    return name, given


def _agents(
    agents: MappingReader, defaults: EpisodicMemoryBlock, diagnostics: Diagnostics
) -> dict[str, AgentBlock]:
    found: dict[str, AgentBlock] = {}
    for written, at in agents.key_positions():
        section, name = agents.section(written), normalize_name(written)
        reason = "occurs twice" if name in found else names.agent(name)
        if reason is not None:
            diagnostics.add(at, agents.where, f"an agent's name {reason}")
        episodic = section.section("episodic_memory")
        function = section.located_text("function", names.function)
        found[name] = AgentBlock(
            name=name,
            capabilities=section.texts("capabilities", names.name),
            permissions=section.choice("permissions", _PERMISSIONS, "private"),
            function=function.text if function else None,
            episodic_capacity=episodic.count("capacity") or defaults.capacity_per_agent,
            pinned_namespaces=episodic.texts("pinned_namespaces", names.namespace),
        )
        episodic.finish()
        section.finish()
    if agents.is_there and not found:
        diagnostics.add(agents.at, agents.where, "must not be empty")
    return found


def _step(
    section: MappingReader, agents: dict[str, AgentBlock], defaults: WorkingMemoryBlock
) -> WrittenStep:
    task = section.located_text("task", names.name, required=True)
    agent = section.located_text("agent", names.agent, required=True)
    depends_on = section.words("depends_on", names.name)
    parent = section.located_text("parent", names.name)
    function = section.located_text("function", names.function)
    worker = agents.get(agent.text) if agent else None
    step = PlanStep(
        task=task.text if task else "",
        agent=agent.text if agent else "",
        depends_on=tuple(word.text for word in depends_on),
        parent=parent.text if parent else None,
        function=function.text if function else worker.function if worker else None,
        input=section.mapping("input"),
        outputs=section.texts("outputs", names.name),
        memory_policy=_policy(section.section("memory_policy"), defaults),
    )
    section.finish()
    return WrittenStep(
        step=step,
        at=section.at,
        where=section.where,
        task=task,
        agent=agent,
        depends_on=depends_on,
        parent=parent,
    )


def _policy(section: MappingReader, defaults: WorkingMemoryBlock) -> MemoryPolicy:
    policy = MemoryPolicy(
        archive_on_completion=section.flag("archive_on_completion", defaults.archive_on_completion),
        inherit_from_parent=section.flag("inherit_from_parent", False),
        max_entries=section.count("max_entries") or defaults.max_entries_per_task,
        max_total_size_kb=section.count("max_total_size_kb", _MOST_KILOBYTES),
    )
    section.finish()
    return policy
