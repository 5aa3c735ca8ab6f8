"""Whatever a plan looks like and however its functions fail, every run ends, and ends right."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorywall.workflow import PlanStep, Workflow, WorkflowError
from tests.support.extent import extent
from tests.workflow_execution.stage import LIMIT, local_stage, runners, statuses

ENDS_BADLY = ("failed", "skipped")
_RUNS = count(1)


@dataclass(frozen=True)
class Expected:
    """What must come of a plan, thought out from its end, without any order in time.

    deeds: what each step's function does
    """

    workflow: Workflow
    deeds: dict[str, str]

    @cached_property
    def statuses(self) -> dict[str, str]:
        return {step.task: self.end_of(step) for step in self.workflow.plan}

    def step(self, name: str) -> PlanStep:
        (found,) = (step for step in self.workflow.plan if step.task == name)
        return found

    def missed(self, step: PlanStep) -> list[str]:
        """How those ended that had to be completed, or open, for this step to begin, and were
        not."""
        ends = [self.end_of(self.step(name)) for name in step.depends_on]
        if step.parent is not None and not self.is_open(self.step(step.parent)):
            ends.append(self.end_of(self.step(step.parent)))
        return [end for end in ends if end != "completed"]

    def is_open(self, step: PlanStep) -> bool:
        """Whether the function did its part, so that sub-steps can begin."""
        return not self.missed(step) and self.deeds[step.task] == "works"

    def end_of(self, step: PlanStep) -> str:
        missed = self.missed(step)
        if any(end in ENDS_BADLY for end in missed):
            return "skipped"
        if missed:
            waits = any(self.end_of(self.step(name)) != "completed" for name in step.depends_on)
            return "pending" if waits else "blocked"
        if self.deeds[step.task] != "works":
            return {"raises": "failed", "gives nothing": "failed"}.get(
                self.deeds[step.task], "blocked"
            )
        parts = [self.end_of(one) for one in self.workflow.plan if one.parent == step.task]
        if any(end in ENDS_BADLY for end in parts):
            return "failed"
        return "completed" if all(end == "completed" for end in parts) else "blocked"


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Steps in any order that refer to one another, and what their functions do."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 8)))]
    steps: list[dict[str, Any]] = []
    above: dict[str, set[str]] = {}
    for number, name in enumerate(names):
        step: dict[str, Any] = {"task": name, "agent": draw(st.sampled_from(["ann", "bob"]))}
        parent = draw(st.none() | st.sampled_from(names[:number])) if number else None
        above[name] = set()
        if parent is not None:
            step["parent"] = parent
            above[name] = {parent, *above[parent]}
        if others := [other for other in names[:number] if other not in above[name]]:
            step["depends_on"] = draw(st.lists(st.sampled_from(others), max_size=2, unique=True))
        step["outputs"] = ["done"]
        step["memory_policy"] = {"inherit_from_parent": draw(st.booleans())}
        steps.append(step)
    deed = st.sampled_from(["works"] * 4 + ["raises", "gives nothing", "blocks"])
    deeds = {name: draw(deed) for name in names}
    for step in steps:
        step["input"] = {"deed": deeds[step["task"]]}
    return draw(st.permutations(steps)), deeds


FUNCTIONS = """
    def work(ctx):
        ctx.memory.set("notes", ctx.task.id, {"n": 1})
        deed = ctx.input["deed"]
        if deed == "raises":
            raise ValueError
        if deed == "blocks":
            raise ctx.blocked()
        ctx.memory.inherited()
        return {"done": 1} if deed == "works" else None
"""


@settings(max_examples=extent(15, long=300), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans())
def test_every_run_ends_as_it_must(plan: tuple[list[dict[str, Any]], dict[str, str]]) -> None:
    steps, deeds = plan
    agents = {name: {"function": "MODULE:work"} for name in ("ann", "bob")}
    text = yaml.safe_dump({"name": f"run {next(_RUNS)}", "agents": agents, "plan": steps})
    with TemporaryDirectory() as folder, local_stage(Path(folder)) as stage:
        stage.functions(FUNCTIONS)
        try:
            workflow = stage.read(text)
        except WorkflowError:
            # Its steps wait for one another in a circle, which is for the reader to see.
            return
        outcomes: list[Any] = []
        running = threading.Thread(target=lambda: outcomes.append(stage.run(text)), daemon=True)
        running.start()
        running.join(2 * LIMIT)
        assert not running.is_alive(), "the run does not end"
        (outcome,) = outcomes
        assert statuses(outcome) == Expected(workflow, deeds).statuses
        assert outcome.completed == (set(statuses(outcome).values()) == {"completed"})
        assert runners() == []
