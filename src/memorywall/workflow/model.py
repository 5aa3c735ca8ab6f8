"""The model of a workflow file (RFC-0015 section 7).

    name: quarterly-compliance            # required
    version: "1.0"                        # text, so in quotes
    memory:
      semantic_namespaces:                # loaded before the first step, see below
        - company_policies
        - {name: billing_domain, from: facts/billing.jsonl}
      working_memory:
        archive_on_completion: true
        max_entries_per_task: 50
      episodic_memory:
        capacity_per_agent: 500
        eviction_policy: lru              # the only one
    agents:                               # required
      billing-agent:
        capabilities: [billing]
        permissions: private              # private, inherit or open
        function: my_package.billing:work # a Worker function; a stub stands in for none
        episodic_memory: {capacity: 200, pinned_namespaces: [learned_patterns]}
    plan:                                 # required
      - task: process-billing             # required, once in the plan
        agent: billing-agent              # required, one of `agents`
        depends_on: [gather-financial-data]
        parent: close-the-books           # a step this one is a part of
        function: my_package.billing:run  # instead of the agent's
        input: {quarter: 3}
        outputs: [billing_report]
        memory_policy:                    # RFC-0015 section 6.5
          archive_on_completion: true
          inherit_from_parent: false
          max_entries: 100
          max_total_size_kb: 1024

The memory block sets defaults. A step or an agent may replace them by larger or smaller values, as
the RFC's own file does (100 entries against 50, 200 against 500). The parsed model contains the
results: `memory_policy` and `function` of a step and `episodic_capacity` of an agent include the
defaults.

A step begins when all its dependencies have ended. A parent begins before its sub-steps, which may
inherit its working memory, and ends after them.

Semantic namespaces are loaded from files. The name of a file is the name of the namespace with the
ending `.json`, `.jsonl`, `.yaml` or `.yml`. The file is beside the workflow file, or in a folder
there with the name of the workflow file without its ending. A namespace without a file is only
declared. `from` names an existing file by its path inside the folder of the workflow file. JSON and
YAML files contain a list of entries, and JSON Lines files one entry a line. An entry has a `key`
and a `value` (a mapping), and may have `tags` and a `sensitivity`.

YAML is parsed strictly. Only the literals of JSON are not text: numbers, true, false and null.
Dates and `yes` are text. Anchors, aliases, tags and duplicate keys are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memorywall.records.entry import Sensitivity
from memorywall.records.task import MemoryPolicy
from memorywall.records.tier import Tier

EvictionPolicy = Literal["lru"]
Permissions = Literal["private", "inherit", "open"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SemanticEntry:
    """A semantic entry that is written before the first step begins."""

    key: str
    value: dict[str, Any]
    tags: tuple[str, ...] = ()
    sensitivity: Sensitivity = "internal"


@dataclass(frozen=True, kw_only=True, slots=True)
class SemanticNamespace:
    """A semantic namespace of the workflow.

    file: the file of its entries, None for a namespace that is only declared
    """

    name: str
    file: Path | None = None
    entries: tuple[SemanticEntry, ...] = ()

    def elements(self) -> list[dict[str, Any]]:
        """The entries as elements of a batch that creates them."""
        return [
            {
                "namespace": self.name,
                "key": entry.key,
                "value": entry.value,
                "memory_type": str(Tier.SEMANTIC),
                "tags": list(entry.tags),
                "sensitivity": entry.sensitivity,
            }
            for entry in self.entries
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkingMemoryBlock:
    """Defaults of the working memory of tasks."""

    archive_on_completion: bool = True
    max_entries_per_task: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodicMemoryBlock:
    """Defaults of the episodic memory of agents."""

    capacity_per_agent: int | None = None
    eviction_policy: EvictionPolicy = "lru"


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryBlock:
    """The `memory` block."""

    semantic_namespaces: tuple[SemanticNamespace, ...] = ()
    working_memory: WorkingMemoryBlock = WorkingMemoryBlock()
    episodic_memory: EpisodicMemoryBlock = EpisodicMemoryBlock()


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentBlock:
    """An agent of the workflow.

    permissions: access to the intents that the agent works on, besides its own: no other principal,
        principals with access to the parent intent, or everyone
    function: `module:name` of a worker function, None for a stub
    episodic_capacity: entries; None for the default of the server
    pinned_namespaces: episodic entries in these namespaces are never evicted
    """

    name: str
    capabilities: tuple[str, ...] = ()
    permissions: Permissions = "private"
    function: str | None = None
    episodic_capacity: int | None = None
    pinned_namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanStep:
    """A task of the plan.

    parent: the step that this step is a part of
    function: `module:name` of a worker function: the step's own, or its agent's
    outputs: the keys that the result must have
    """

    task: str
    agent: str
    depends_on: tuple[str, ...] = ()
    parent: str | None = None
    function: str | None = None
    input: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    memory_policy: MemoryPolicy = field(default_factory=MemoryPolicy)


@dataclass(frozen=True, kw_only=True, slots=True)
class Workflow:
    """A valid workflow file.

    agents: by name, in the order of the file
    plan: the steps in an order in which each step begins after the steps that it waits for; the
        order of the file if possible
    """

    path: Path
    name: str
    version: str | None = None
    memory: MemoryBlock = MemoryBlock()
    agents: Mapping[str, AgentBlock]
    plan: tuple[PlanStep, ...]
