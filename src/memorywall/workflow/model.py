"""What a workflow file says (RFC-0015 section 7).

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

The memory block gives defaults. A step or an agent that says otherwise replaces them for itself, in
either direction, as the RFC's own file does (100 entries against 50, 200 against 500). What is read
is the outcome: a step's `memory_policy` and `function` and an agent's `episodic_capacity` have the
defaults in them already.

A step begins when all it depends on has ended. A parent begins before its sub-steps, whose working
memory may inherit its own, and ends after them.

Semantic namespaces are loaded from files with the name of the namespace and the ending `.json`,
`.jsonl`, `.yaml` or `.yml`, beside the workflow file or in a folder there that is called like it
without its ending; a namespace without a file is only declared. `from` names a file by its path
from the workflow file's folder, which it cannot leave, and this file must exist. JSON and YAML
files hold a list of entries, JSON Lines files one entry a line; an entry has a `key` and a `value`
(a mapping), and may have `tags` and a `sensitivity`.

YAML is read strictly. Only what JSON knows is more than text: numbers, true, false and null; dates
and `yes` are text. Anchors, aliases, tags and duplicate keys are refused.
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
    """A piece of shared knowledge that is there before the first step begins."""

    key: str
    value: dict[str, Any]
    tags: tuple[str, ...] = ()
    sensitivity: Sensitivity = "internal"


@dataclass(frozen=True, kw_only=True, slots=True)
class SemanticNamespace:
    """A namespace of shared knowledge the workflow uses.

    file: where its entries were read from, None where it is only declared
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
    """What holds for the working memory of every task that does not say otherwise."""

    archive_on_completion: bool = True
    max_entries_per_task: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodicMemoryBlock:
    """What holds for the episodic memory of every agent that does not say otherwise."""

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
    """An agent that takes part.

    permissions: who besides the agent reaches the intents it works on: nobody, whoever reaches
        what they are a part of, or everyone
    function: `module:name` of a Worker function, None for a stub
    episodic_capacity: its own or the memory block's, None for what the server has
    pinned_namespaces: episodic entries in these are never evicted
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

    parent: the step this one is a part of
    function: `module:name` of a Worker function: the step's own, else its agent's
    outputs: the keys its result must have
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
    """A whole file, checked.

    agents: by name, in the order of the file
    plan: in an order in which the steps can be begun one after the other, each after all it waits
        for; the order of the file where that is such a one
    """

    path: Path
    name: str
    version: str | None = None
    memory: MemoryBlock = MemoryBlock()
    agents: Mapping[str, AgentBlock]
    plan: tuple[PlanStep, ...]
