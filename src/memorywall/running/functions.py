"""What a step does: the function its file names, or a stub."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any

from memorywall.records.errors import ConfigurationError
from memorywall.running.outcome import listed
from memorywall.sdk.worker import AsyncTaskWorker
from memorywall.sdk.worker_context import TaskContext
from memorywall.workflow import PlanStep, Workflow

StepFunction = Callable[[TaskContext], Any]
STUB_NAMESPACE = "workflow"


class StepError(Exception):
    """A step did not do what the plan says it does."""


@contextmanager
def importing_beside(workflow: Workflow) -> Iterator[None]:
    """While this lasts, modules in the workflow file's folder are found before all others."""
    folder = str(workflow.path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def functions_of(workflow: Workflow) -> dict[str, StepFunction]:
    """The function of each step, by its task.

    Raises ConfigurationError for a function that cannot be imported or called.
    """
    return {step.task: _checked(step, _function_of(step)) for step in workflow.plan}


def _function_of(step: PlanStep) -> StepFunction:
    if step.function is None:
        return _stub(step)
    module_name, _, name = step.function.partition(":")
    try:
        module = import_module(module_name)
    except (Exception, SystemExit) as error:
        # A module may do anything while it is imported.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigurationError(f"`{module_name}` cannot be imported: {reason}") from error
    if not hasattr(module, name):
        where = getattr(module, "__file__", None) or "its module"
        raise ConfigurationError(f"there is no `{name}` in {where}")
    found = getattr(module, name)
    if isinstance(found, AsyncTaskWorker) or iscoroutinefunction(found):
        raise ConfigurationError(f"`{step.function}` is async; a workflow runs plain functions")
    if not callable(found):
        raise ConfigurationError(f"`{step.function}` is not a function")
    function: StepFunction = found
    return function


def _stub(step: PlanStep) -> StepFunction:
    """Stands in for a function: it leaves a trace in working memory and gives empty outputs."""

    def work(ctx: TaskContext) -> dict[str, Any]:
        # An agent has each name once, and may have many steps.
        ctx.memory.set(STUB_NAMESPACE, ctx.task.id, {"stub": True})
        return {name: {"stub": True} for name in step.outputs}

    return work


def _checked(step: PlanStep, function: StepFunction) -> StepFunction:
    """The function, made to fail when an output is missing."""

    def work(ctx: TaskContext) -> Any:
        try:
            result = function(ctx)
        except SystemExit as error:
            raise StepError("the function ended the program") from error
        # What is neither a mapping nor None is refused by the worker itself.
        if result is None or isinstance(result, Mapping):
            missing = [name for name in step.outputs if name not in (result or {})]
            if missing:
                raise StepError(f"the function gave no {listed(missing)}")
        return result

    return work
