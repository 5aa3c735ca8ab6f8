"""The function of a step: the function in the workflow file, or a stub."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any

from memorywall.records.errors import ConfigurationError
from memorywall.records.identifiers import normalize_name
from memorywall.sdk.worker import AsyncTaskWorker
from memorywall.sdk.worker_context import TaskContext
from memorywall.workflow import PlanStep, Workflow
from memorywall.workflow_execution.results import format_names

StepFunction = Callable[[TaskContext], Any]
STUB_NAMESPACE = "workflow"


class StepError(Exception):
    """A step failed, or its result lacks a declared output."""


@contextmanager
def importing_beside(workflow: Workflow) -> Iterator[None]:
    """Puts the folder of the workflow file first in the import path while the context is open."""
    folder = str(workflow.path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def functions_of(workflow: Workflow) -> dict[str, StepFunction]:
    """The function of each step by the name of its task.

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
        # The import of a module may raise any exception.
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
    """A stub: writes one entry of working memory and returns empty outputs."""

    def work(ctx: TaskContext) -> dict[str, Any]:
        # The key contains the step, because an agent may have many steps and a name is unique.
        ctx.memory.set(STUB_NAMESPACE, ctx.task.id, {"stub": True})
        return {name: {"stub": True} for name in step.outputs}

    return work


def _checked(step: PlanStep, function: StepFunction) -> StepFunction:
    """The function, wrapped so that a missing output fails the step."""

    def work(ctx: TaskContext) -> Any:
        try:
            result = function(ctx)
        except SystemExit as error:
            raise StepError("the function ended the program") from error
        # The worker itself refuses a result that is neither a mapping nor None.
        if result is None or isinstance(result, Mapping):
            made = set(map(normalize_name, result or ()))
            missing = [name for name in step.outputs if name not in made]
            if missing:
                raise StepError(f"the function gave no {format_names(missing)}")
        return result

    return work
