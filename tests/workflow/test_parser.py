"""What is read from a workflow file that is right."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from memorywall.records.errors import ValidationError
from memorywall.records.task import MemoryPolicy
from memorywall.service.requests import validation
from memorywall.workflow import (
    AgentBlock,
    EpisodicMemoryBlock,
    MemoryBlock,
    PlanStep,
    SemanticNamespace,
    Workflow,
    WorkingMemoryBlock,
    names,
    read_workflow,
)
from tests.workflow.support import PRINTED, SMALL, read, write

EXAMPLE = Path(__file__).parents[2] / "examples" / "quarterly-compliance.yaml"


def printed_workflow(path: Path) -> Workflow:
    """What the file that RFC-0015 prints says."""
    return Workflow(
        path=path,
        name="quarterly-compliance",
        version="1.0",
        memory=MemoryBlock(
            semantic_namespaces=(
                SemanticNamespace(name="company_policies"),
                SemanticNamespace(name="compliance_rules"),
                SemanticNamespace(name="billing_domain"),
            ),
            working_memory=WorkingMemoryBlock(archive_on_completion=True, max_entries_per_task=50),
            episodic_memory=EpisodicMemoryBlock(capacity_per_agent=500, eviction_policy="lru"),
        ),
        agents={
            "billing-agent": AgentBlock(
                name="billing-agent",
                capabilities=("billing", "invoicing"),
                permissions="private",
                episodic_capacity=200,
                pinned_namespaces=("learned_patterns",),
            ),
            "data-agent": AgentBlock(
                name="data-agent",
                capabilities=("data-analysis", "sql"),
                permissions="private",
                episodic_capacity=500,
            ),
        },
        plan=(
            PlanStep(
                task="gather-financial-data",
                agent="data-agent",
                outputs=("financial_summary",),
                memory_policy=MemoryPolicy(max_entries=50),
            ),
            PlanStep(
                task="process-billing",
                agent="billing-agent",
                depends_on=("gather-financial-data",),
                outputs=("billing_report",),
                memory_policy=MemoryPolicy(max_entries=100),
            ),
        ),
    )


def test_the_file_of_the_rfc_reads_as_printed(tmp_path: Path) -> None:
    path = write(tmp_path, PRINTED, "quarterly-compliance.yaml")
    assert read_workflow(path) == printed_workflow(path)
    assert read_workflow(str(path)) == printed_workflow(path)


def test_the_example_is_the_file_of_the_rfc_with_knowledge() -> None:
    workflow = read_workflow(EXAMPLE)
    namespaces = workflow.memory.semantic_namespaces
    for namespace in namespaces:
        assert namespace.file is not None
        assert namespace.entries
    bare = tuple(SemanticNamespace(name=namespace.name) for namespace in namespaces)
    memory = dataclasses.replace(workflow.memory, semantic_namespaces=bare)
    assert dataclasses.replace(workflow, memory=memory) == printed_workflow(EXAMPLE)


def test_omitted_fields_have_the_least_access(tmp_path: Path) -> None:
    workflow = read(tmp_path, SMALL)
    assert workflow.version is None
    assert workflow.memory == MemoryBlock()
    assert workflow.agents == {"worker": AgentBlock(name="worker", permissions="private")}
    assert workflow.plan == (PlanStep(task="only", agent="worker"),)
    assert workflow.plan[0].memory_policy == MemoryPolicy()


def test_everything_a_step_may_say(tmp_path: Path) -> None:
    workflow = read(
        tmp_path,
        """\
name: close
agents:
  worker: {function: "agents.billing:work", permissions: inherit}
  other: {permissions: open}
plan:
  - task: whole
    agent: worker
  - task: part
    agent: worker
    parent: whole
    function: local:part_of_it
    input:
      quarter: 3
      rate: 0.5
      since: 2025-06-01
      at: 12:30
      country: no
      zip: 010
      none: null
      open: true
      lists: [[1, -2], {a: b}]
    memory_policy: {archive_on_completion: false, inherit_from_parent: true, max_total_size_kb: 9}
  - {task: free, agent: other}
""",
    )
    whole, part, free = workflow.plan
    assert whole.function == "agents.billing:work"
    assert (part.parent, part.function) == ("whole", "local:part_of_it")
    assert free.function is None
    assert [agent.permissions for agent in workflow.agents.values()] == ["inherit", "open"]
    assert part.memory_policy == MemoryPolicy(
        archive_on_completion=False, inherit_from_parent=True, max_total_size_kb=9
    )
    assert part.input == {
        "quarter": 3,
        "rate": 0.5,
        "since": "2025-06-01",
        "at": "12:30",
        "country": "no",
        "zip": "010",
        "none": None,
        "open": True,
        "lists": [[1, -2], {"a": "b"}],
    }


@pytest.mark.parametrize(
    ("said", "archives", "most"),
    [
        ("", False, 7),
        ("memory_policy: {}", False, 7),
        ("memory_policy: {archive_on_completion: true}", True, 7),
        ("memory_policy: {max_entries: 5}", False, 5),
        ("memory_policy: {max_entries: 9}", False, 9),
    ],
)
def test_the_memory_block_gives_defaults(
    tmp_path: Path, said: str, archives: bool, most: int
) -> None:
    block = "memory: {working_memory: {archive_on_completion: false, max_entries_per_task: 7}}\n"
    policy = read(tmp_path, f"{SMALL}    {said}\n{block}").plan[0].memory_policy
    assert (policy.archive_on_completion, policy.max_entries) == (archives, most)


def test_steps_follow_their_dependencies_and_then_file_order(tmp_path: Path) -> None:
    workflow = read(
        tmp_path,
        """\
name: order
agents: {w: {}}
plan:
  - {task: report, agent: w, depends_on: [close]}
  - {task: alone, agent: w}
  - {task: sums, agent: w, parent: close, depends_on: [gather]}
  - {task: close, agent: w}
  - {task: gather, agent: w}
""",
    )
    # `report` waits for `close`, which ends only after its part `sums`, which waits for `gather`.
    assert [step.task for step in workflow.plan] == ["alone", "close", "gather", "sums", "report"]


def test_a_mark_of_the_byte_order_and_windows_lines_are_no_matter(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode()
    assert read_workflow(write(tmp_path, text)).plan == read(tmp_path, SMALL).plan


def test_names_have_the_bounds_the_server_sets() -> None:
    for length in (names.LONGEST_AGENT, names.LONGEST_AGENT + 1):
        refused = names.agent("a" * length) is not None
        assert refused == (length > names.LONGEST_AGENT)
        if refused:
            with pytest.raises(ValidationError):
                validation.check_agent("agent_id", "a" * length)
        else:
            validation.check_agent("agent_id", "a" * length)
