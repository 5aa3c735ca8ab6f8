"""Workflow files (RFC-0015 section 7): what is in one, and how it is read.

`model` is the page to read first: it says what a file may hold and what comes of it.
"""

from __future__ import annotations

from memorywall.workflow.errors import Problem, WorkflowError
from memorywall.workflow.model import (
    AgentBlock,
    EpisodicMemoryBlock,
    MemoryBlock,
    PlanStep,
    SemanticEntry,
    SemanticNamespace,
    Workflow,
    WorkingMemoryBlock,
)
from memorywall.workflow.reading import read_workflow

__all__ = [
    "AgentBlock",
    "EpisodicMemoryBlock",
    "MemoryBlock",
    "PlanStep",
    "Problem",
    "SemanticEntry",
    "SemanticNamespace",
    "Workflow",
    "WorkflowError",
    "WorkingMemoryBlock",
    "read_workflow",
]
