"""Carries a workflow out, step by step in the order of its plan (RFC-0015 section 7)."""

from __future__ import annotations

from contextlib import suppress

from tqdm import tqdm

from memorywall.records.errors import (
    ConfigurationError,
    MemoryAccessError,
    MemorywallError,
    ResourceConflictError,
)
from memorywall.records.intent import IntentStatus
from memorywall.records.task import ENDS, TaskStatus
from memorywall.running.connections import Connections
from memorywall.running.functions import StepFunction, functions_of, importing_beside
from memorywall.running.knowledge import load_knowledge
from memorywall.running.office import in_office
from memorywall.running.outcome import Outcome, StepOutcome, listed, outcome_of
from memorywall.running.step import StepAtWork
from memorywall.sdk.client import Client
from memorywall.wire.work import IntentView, TaskView
from memorywall.workflow import PlanStep, Workflow

_CANNOT_SPEAK = "the key cannot speak for the workflow's agents; that needs act_as"
_CANNOT_LIMIT = "the workflow sets agents' capacities; that needs a key with tenant.admin"
_MOST_TASKS = 1_000
_ATTEMPTS = 5


def run_workflow(
    workflow: Workflow, connections: Connections, *, progress: bool = False
) -> Outcome:
    """Runs a workflow to its end, each time as a new intent.

    A step whose function fails is failed, and what waits for it is skipped; the others go on. A
    step is completed only if its sub-steps are. What is interrupted, or meets an error of the
    runner's own, is called off: its functions are asked to stop, its tasks are cancelled and its
    intent is abandoned.

    progress: whether to show it, if standard error is a terminal
    Raises ConfigurationError for functions that cannot be imported and for a key that does not
    suffice, before anything is written; MemorywallError for what the server refuses.
    """
    with importing_beside(workflow):
        functions = functions_of(workflow)
        _check_agents(workflow, connections)
        coordinator = connections.coordinator
        _set_limits(coordinator, workflow)
        load_knowledge(coordinator, workflow.memory.semantic_namespaces, progress=progress)
        intent = coordinator.intents.create(
            workflow.name, constraints={"workflow": workflow.name, "version": workflow.version}
        )
        try:
            with in_office(coordinator, intent.id, _guardrails(workflow)):
                tasks = _make_tasks(coordinator, intent, workflow)
                running = _Running(workflow, connections, tasks, functions)
                steps = running.carry_out(progress)
        except BaseException:
            _call_off(coordinator, intent)
            raise
        completed = all(step.completed for step in steps)
        _set_status(
            coordinator, intent, IntentStatus.COMPLETED if completed else IntentStatus.BLOCKED
        )
        return Outcome(name=workflow.name, intent_id=intent.id, completed=completed, steps=steps)


class _Running:
    """A workflow under way. One step begins after the other, in this thread; the functions run in
    threads of their own, where those of steps with sub-steps stay until these have ended."""

    def __init__(
        self,
        workflow: Workflow,
        connections: Connections,
        tasks: dict[str, TaskView],
        functions: dict[str, StepFunction],
    ) -> None:
        self._connections = connections
        self._coordinator = connections.coordinator
        self._tasks = tasks
        self._functions = functions
        self._steps = {step.task: step for step in workflow.plan}
        self._parts: dict[str, list[str]] = {name: [] for name in self._steps}
        for step in workflow.plan:
            if step.parent is not None:
                self._parts[step.parent].append(step.task)
        self._open: dict[str, StepAtWork] = {}
        self._ended: dict[str, StepOutcome] = {}

    def carry_out(self, progress: bool) -> list[StepOutcome]:
        """Every step, to its end; whatever is raised, no function is left alone with its task."""
        bar = tqdm(
            self._steps.values(),
            unit=" steps",
            leave=False,
            disable=None if progress else True,
        )
        try:
            with bar:
                for step in bar:
                    bar.set_description(step.task, refresh=True)
                    self._begin(step)
        finally:
            # None are open here unless something was raised.
            for at_work in self._open.values():
                at_work.stop()
            for at_work in self._open.values():
                at_work.wait()
        return [self._ended[name] for name in self._steps]

    def _begin(self, step: PlanStep) -> None:
        """Works on a step: to its end, or as far as its sub-steps can begin."""
        task = self._look_at(step)
        within = step.parent is None or step.parent in self._open
        if task.status != TaskStatus.READY or not within:
            self._pass_over(step, task)
            return
        at_work = StepAtWork(
            step.task,
            task.id,
            self._functions[step.task],
            self._connections.agent(step.agent),
            has_parts=bool(self._parts[step.task]),
        )
        self._open[step.task] = at_work
        if not at_work.begin():
            self._end(step)

    def _pass_over(self, step: PlanStep, task: TaskView) -> None:
        """Leaves a step out. It is skipped when what it waits for cannot be completed any more;
        behind something that is only blocked it stays pending, or is blocked as well."""
        waits_for = [*step.depends_on, *([] if step.parent is None else [step.parent])]
        missed = [
            self._ended[name]
            for name in waits_for
            if name in self._ended and not self._ended[name].completed
        ]
        reason = f"it was {task.status} when its turn came"
        if missed:
            reason = f"not completed: {listed(one.step for one in missed)}"
        # Somebody else may have moved it meanwhile, and then it is as they want it.
        with suppress(ResourceConflictError):
            if any(one.is_over for one in missed) and task.status not in ENDS:
                task = self._coordinator.tasks.update(task, status=TaskStatus.SKIPPED)
            elif missed and task.status == TaskStatus.READY:
                task = self._coordinator.tasks.update(
                    task, status=TaskStatus.BLOCKED, blocked_reason=reason
                )
        self._note(step, outcome_of(step, task, reason))

    def _end(self, step: PlanStep) -> None:
        parts = [self._ended[name] for name in self._parts[step.task] if name in self._ended]
        reason = self._open[step.task].end(parts)
        del self._open[step.task]
        self._note(step, outcome_of(step, self._look_at(step), reason))

    def _note(self, step: PlanStep, outcome: StepOutcome) -> None:
        """A step has ended; with the last of its sub-steps so may the one it is a part of."""
        self._ended[step.task] = outcome
        above = step.parent
        if above in self._open and all(name in self._ended for name in self._parts[above]):
            self._end(self._steps[above])

    def _look_at(self, step: PlanStep) -> TaskView:
        return self._coordinator.tasks.get(self._tasks[step.task].id)


def _check_agents(workflow: Workflow, connections: Connections) -> None:
    """Raises ConfigurationError unless all who work can be spoken for."""
    for name in dict.fromkeys(step.agent for step in workflow.plan):
        try:
            connections.agent(name).whoami()
        except MemoryAccessError as error:
            raise ConfigurationError(_CANNOT_SPEAK) from error


def _set_limits(coordinator: Client, workflow: Workflow) -> None:
    for agent in workflow.agents.values():
        if agent.episodic_capacity is None and not agent.pinned_namespaces:
            continue
        try:
            coordinator.memory.set_limits(
                agent.name,
                episodic_capacity=agent.episodic_capacity,
                pinned_namespaces=agent.pinned_namespaces,
            )
        except MemoryAccessError as error:
            raise ConfigurationError(_CANNOT_LIMIT) from error


def _guardrails(workflow: Workflow) -> dict[str, object]:
    namespaces = [one.name for one in workflow.memory.semantic_namespaces]
    # Whether memory is archived is for each step to say.
    guardrails: dict[str, object] = {"memory_archive_required": False}
    if namespaces:
        guardrails["allowed_semantic_namespaces"] = namespaces
    return guardrails


def _make_tasks(coordinator: Client, intent: IntentView, workflow: Workflow) -> dict[str, TaskView]:
    """A task for every step, by the step's name; in the order of the plan, so that what a task
    refers to is there."""
    tasks: dict[str, TaskView] = {}
    for step in workflow.plan:
        tasks[step.task] = coordinator.tasks.create(
            intent.id,
            step.task,
            assigned_agent=step.agent,
            depends_on=[tasks[name].id for name in step.depends_on],
            parent_task_id=None if step.parent is None else tasks[step.parent].id,
            memory_policy=step.memory_policy,
            input=step.input,
            metadata={"step": step.task, "outputs": list(step.outputs)},
            others={"permissions": workflow.agents[step.agent].permissions},
        )
    return tasks


def _call_off(coordinator: Client, intent: IntentView) -> None:
    """Leaves nothing for anybody to take up, as far as the server can still be reached."""
    with suppress(MemorywallError):
        for task in coordinator.tasks.list(intent_id=intent.id, limit=_MOST_TASKS):
            if task.status not in ENDS:
                with suppress(ResourceConflictError):
                    coordinator.tasks.cancel(task)
        _set_status(coordinator, intent, IntentStatus.ABANDONED)


def _set_status(coordinator: Client, intent: IntentView, status: IntentStatus) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            coordinator.intents.set_status(intent.id, status)
            return
        except ResourceConflictError:
            # A step's function may have changed the intent's state between reading and writing.
            if attempt == _ATTEMPTS:
                raise
