"""Workflow files (RFC-0015 section 7): their model and their parser.

Read `model` first: it documents the content of a file.
"""

from __future__ import annotations

from memorywall.workflow.errors import Diagnostic, WorkflowError
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
from memorywall.workflow.parser import read_workflow

__all__ = [
    "AgentBlock",
    "Diagnostic",
    "EpisodicMemoryBlock",
    "MemoryBlock",
    "PlanStep",
    "SemanticEntry",
    "SemanticNamespace",
    "Workflow",
    "WorkflowError",
    "WorkingMemoryBlock",
    "read_workflow",
]
