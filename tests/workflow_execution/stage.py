"""A place to run workflows in, whose functions are written beside them."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from memorywall.records.tier import Tier
from memorywall.sdk.client import Client
from memorywall.sdk.models import MemoryEntry
from memorywall.wire.events import EventResponse
from memorywall.wire.tasks import TaskResponse
from memorywall.workflow import Workflow, read_workflow
from memorywall.workflow_execution.agent_clients import AgentClients, local_connections
from memorywall.workflow_execution.results import WorkflowResult
from memorywall.workflow_execution.runner import run_workflow
from tests.support.backend import environment_of, give_back

LIMIT = 30.0
"""Seconds after which something that should have come is held to be missing."""
_NUMBERS = count(1)

HEADER = """\
name: staged
agents:
  ann: {function: "MODULE:work"}
  bob: {function: "MODULE:work"}
"""


@dataclass(slots=True)
class Stage:
    """A folder for a workflow, and where it is run.

    `MODULE` in a workflow's text stands for the module of its functions, which has a name of its
    own in each test: a module is imported once in a process.
    """

    folder: Path
    connections: AgentClients
    module_name: str = field(default_factory=lambda: f"staged_functions_{next(_NUMBERS)}")

    @property
    def chief(self) -> Client:
        """Who coordinates."""
        return self.connections.coordinator

    @property
    def module(self) -> ModuleType:
        """The functions' module, once a workflow has been run."""
        return sys.modules[self.module_name]

    def functions(self, source: str) -> None:
        """Writes the module."""
        self.write(f"{self.module_name}.py", textwrap.dedent(source))

    def share(self, **things: Any) -> None:
        """Imports the module before a run does, and gives it these names."""
        sys.path.insert(0, str(self.folder))
        try:
            vars(import_module(self.module_name)).update(things)
        finally:
            sys.path.remove(str(self.folder))

    def write(self, name: str, text: str) -> Path:
        """Writes a file beside the workflow."""
        file = self.folder / name
        file.write_text(text.replace("MODULE", self.module_name), encoding="utf-8")
        return file

    def read(self, text: str) -> Workflow:
        """The workflow of this text."""
        return read_workflow(self.write("flow.yaml", text))

    def run(self, text: str) -> WorkflowResult:
        """Runs the workflow of this text."""
        return run_workflow(self.read(text), self.connections)

    def plan(self, steps: str) -> WorkflowResult:
        """Runs these steps, of the agents ann and bob whose function is `work`."""
        return self.run(HEADER + "plan:\n" + textwrap.indent(textwrap.dedent(steps), "  "))

    def task(self, outcome: WorkflowResult, step: str) -> TaskResponse:
        """The task of a step as it is now."""
        (task_id,) = (one.task_id for one in outcome.steps if one.step == step)
        return self.chief.tasks.get(task_id)

    def log(self, outcome: WorkflowResult, kind: str | None = None) -> list[EventResponse]:
        """The log of the workflow's intent."""
        events = self.chief.intents.events(outcome.intent_id, limit=1000)
        return [event for event in events if kind in (None, event.type)]

    def archived(self, outcome: WorkflowResult, step: str) -> dict[str, Any]:
        """What was archived of a step's working memory: its values by their keys."""
        events = [
            event.data
            for event in self.log(outcome, "memory.archived")
            if event.task_id == self.task(outcome, step).id
        ]
        assert len(events) <= 1
        snapshot: list[Any] = [] if not events else _member(events[0], "snapshot")
        return {one["key"]: one["value"] for one in snapshot}

    def working(self, agent: str) -> list[MemoryEntry]:
        """An agent's working memory."""
        return list(self.connections.agent(agent).memory.query(memory_type=Tier.WORKING))


@contextmanager
def local_stage(folder: Path) -> Iterator[Stage]:
    """A stage whose data directory is in its folder."""
    data = folder / "data"
    try:
        with (
            mock.patch.dict(os.environ, environment_of(data)),
            local_connections(data, "chief") as connections,
        ):
            yield Stage(folder, connections)
    finally:
        give_back(folder)


def _member(data: object, name: str) -> Any:
    assert isinstance(data, dict)
    return data[name]


def statuses(outcome: WorkflowResult) -> dict[str, str]:
    """How each step ended."""
    return {one.step: str(one.status) for one in outcome.steps}


def reason(outcome: WorkflowResult, step: str) -> str | None:
    """Why a step was not completed."""
    (found,) = (one.reason for one in outcome.steps if one.step == step)
    return found


def runners() -> list[threading.Thread]:
    """The threads of runs that are still there."""
    names = ("workflow-", "memorywall-lease")
    return [thread for thread in threading.enumerate() if thread.name.startswith(names)]
