"""The file that RFC-0015 prints, a small one, and what is said about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorywall.workflow import Workflow, WorkflowError, read_workflow

PRINTED = """\
name: quarterly-compliance
version: "1.0"

memory:
  semantic_namespaces:
    - company_policies
    - compliance_rules
    - billing_domain
  working_memory:
    archive_on_completion: true
    max_entries_per_task: 50
  episodic_memory:
    capacity_per_agent: 500
    eviction_policy: lru

agents:
  billing-agent:
    capabilities: [billing, invoicing]
    permissions: private
    episodic_memory:
      capacity: 200
      pinned_namespaces: [learned_patterns]
  data-agent:
    capabilities: [data-analysis, sql]
    permissions: private

plan:
  - task: gather-financial-data
    agent: data-agent
    memory_policy:
      archive_on_completion: true
      inherit_from_parent: false
    outputs: [financial_summary]

  - task: process-billing
    agent: billing-agent
    depends_on: [gather-financial-data]
    memory_policy:
      archive_on_completion: true
      max_entries: 100
    outputs: [billing_report]
"""

SMALL = """\
name: small
agents:
  worker: {}
plan:
  - task: only
    agent: worker
"""

WITH_KNOWLEDGE = SMALL + "memory: {semantic_namespaces: [policies]}\n"


def write(folder: Path, text: str | bytes, name: str = "flow.yaml") -> Path:
    """A file with this content."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def read(folder: Path, text: str) -> Workflow:
    """The workflow of this text."""
    return read_workflow(write(folder, text))


def problems(file: Path) -> list[str]:
    """What reading the file complains of, each line without the folder."""
    with pytest.raises(WorkflowError) as refused:
        read_workflow(file)
    error = refused.value
    heading, *lines = error.detail.split("\n")
    assert lines == [str(problem) for problem in error.problems]
    count = len(lines)
    assert heading == f"the workflow has {count} problem{'s' if count > 1 else ''}"
    assert str(error) == error.detail
    return [line.removeprefix(f"{file.parent}/") for line in lines]


def complaints(folder: Path, text: str | bytes) -> list[str]:
    """As `problems`, of a file with this content, without the file's name."""
    return [line.removeprefix("flow.yaml:") for line in problems(write(folder, text))]
