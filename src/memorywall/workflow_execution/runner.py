"""Executes a workflow step by step in the order of its plan (RFC-0015 section 7)."""

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
from memorywall.records.task import TERMINAL_STATUSES, TaskStatus
from memorywall.sdk.client import Client
from memorywall.wire.intents import IntentResponse
from memorywall.wire.tasks import TaskResponse
from memorywall.workflow import PlanStep, Workflow
from memorywall.workflow_execution.agent_clients import AgentClients
from memorywall.workflow_execution.coordinator_lease import coordinator_lease
from memorywall.workflow_execution.functions import StepFunction, functions_of, importing_beside
from memorywall.workflow_execution.results import (
    StepOutcome,
    WorkflowResult,
    format_names,
    outcome_of,
)
from memorywall.workflow_execution.seed_memory import seed_memory
from memorywall.workflow_execution.step import StepRun

_CANNOT_SPEAK = "the key cannot act for the workflow's agents; that needs act_as"
_CANNOT_LIMIT = "the workflow sets agents' capacities; that needs a key with tenant.admin"
_MOST_TASKS = 1_000
_ATTEMPTS = 5


def run_workflow(
    workflow: Workflow, connections: AgentClients, *, progress: bool = False
) -> WorkflowResult:
    """Runs a workflow to its end, each time with a new intent.

    If the function of a step fails, the step fails, steps that wait for it are skipped, and other
    steps continue. A step is completed only if its sub-steps are completed. After an interruption,
    or an error of the runner, the functions are asked to stop, the tasks are cancelled and the
    intent is abandoned.

    progress: whether to show progress, if standard error is a terminal
    Raises ConfigurationError, before any write, for functions that cannot be imported and for a key
    without the needed permissions; MemorywallError for a refusal of the server.
    """
    with importing_beside(workflow):
        functions = functions_of(workflow)
        _check_agents(workflow, connections)
        coordinator = connections.coordinator
        _set_limits(coordinator, workflow)
        seed_memory(coordinator, workflow.memory.semantic_namespaces, progress=progress)
        intent = coordinator.intents.create(
            workflow.name, constraints={"workflow": workflow.name, "version": workflow.version}
        )
        try:
            with coordinator_lease(coordinator, intent.id, _guardrails(workflow)):
                tasks = _make_tasks(coordinator, intent, workflow)
                running = _WorkflowRun(workflow, connections, tasks, functions)
                steps = running.carry_out(progress)
        except BaseException:
            _call_off(coordinator, intent)
            raise
        completed = all(step.completed for step in steps)
        _set_status(
            coordinator, intent, IntentStatus.COMPLETED if completed else IntentStatus.BLOCKED
        )
        return WorkflowResult(
            name=workflow.name, intent_id=intent.id, completed=completed, steps=steps
        )


class _WorkflowRun:
    """A running workflow. Steps begin one after the other in this thread. Functions run in threads
    of their own; the thread of a step with sub-steps lasts until the sub-steps have ended."""

    def __init__(
        self,
        workflow: Workflow,
        connections: AgentClients,
        tasks: dict[str, TaskResponse],
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
        self._open: dict[str, StepRun] = {}
        self._ended: dict[str, StepOutcome] = {}

    def carry_out(self, progress: bool) -> list[StepOutcome]:
        """Runs all steps. After any exception, all functions are stopped before it propagates."""
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
            # Steps are open here only after an exception.
            for at_work in self._open.values():
                at_work.stop()
            for at_work in self._open.values():
                at_work.wait()
        return [self._ended[name] for name in self._steps]

    def _begin(self, step: PlanStep) -> None:
        """Runs a step to its end, or until its sub-steps can begin."""
        task = self._read_task(step)
        within = step.parent is None or step.parent in self._open
        if task.status != TaskStatus.READY or not within:
            self._pass_over(step, task)
            return
        at_work = StepRun(
            step.task,
            task.id,
            self._functions[step.task],
            self._connections.agent(step.agent),
            has_parts=bool(self._parts[step.task]),
        )
        self._open[step.task] = at_work
        if not at_work.begin():
            self._end(step)

    def _pass_over(self, step: PlanStep, task: TaskResponse) -> None:
        """Omits a step. The step is skipped if a dependency cannot be completed any more. If a
        dependency is only blocked, the step stays pending or is blocked."""
        waits_for = [*step.depends_on, *([] if step.parent is None else [step.parent])]
        missed = [
            self._ended[name]
            for name in waits_for
            if name in self._ended and not self._ended[name].completed
        ]
        reason = f"it was {task.status} when its turn came"
        if missed:
            reason = f"not completed: {format_names(one.step for one in missed)}"
        # Another client may have changed the task meanwhile; its change remains.
        with suppress(ResourceConflictError):
            if any(one.is_terminal for one in missed) and task.status not in TERMINAL_STATUSES:
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
        self._note(step, outcome_of(step, self._read_task(step), reason))

    def _note(self, step: PlanStep, outcome: StepOutcome) -> None:
        """Records the end of a step. The end of the last sub-step may end its parent."""
        self._ended[step.task] = outcome
        above = step.parent
        if above in self._open and all(name in self._ended for name in self._parts[above]):
            self._end(self._steps[above])

    def _read_task(self, step: PlanStep) -> TaskResponse:
        return self._coordinator.tasks.get(self._tasks[step.task].id)


def _check_agents(workflow: Workflow, connections: AgentClients) -> None:
    """Raises ConfigurationError unless the key can act for all agents."""
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
    # Each step decides whether its memory is archived.
    guardrails: dict[str, object] = {"memory_archive_required": False}
    if namespaces:
        guardrails["allowed_semantic_namespaces"] = namespaces
    return guardrails


def _make_tasks(
    coordinator: Client, intent: IntentResponse, workflow: Workflow
) -> dict[str, TaskResponse]:
    """Creates a task for every step, and returns the tasks by the names of the steps. The order of
    the plan ensures that referenced tasks exist."""
    tasks: dict[str, TaskResponse] = {}
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


def _call_off(coordinator: Client, intent: IntentResponse) -> None:
    """Cancels all open tasks and abandons the intent, if the server can be reached."""
    with suppress(MemorywallError):
        for task in coordinator.tasks.list(intent_id=intent.id, limit=_MOST_TASKS):
            if task.status not in TERMINAL_STATUSES:
                with suppress(ResourceConflictError):
                    coordinator.tasks.cancel(task)
        _set_status(coordinator, intent, IntentStatus.ABANDONED)


def _set_status(coordinator: Client, intent: IntentResponse, status: IntentStatus) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            coordinator.intents.set_status(intent.id, status)
            return
        except ResourceConflictError:
            # A function may have changed the intent between the read and the write.
            if attempt == _ATTEMPTS:
                raise
