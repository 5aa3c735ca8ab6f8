"""`memorywall workflow`."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.options import json_option, print_result
from memorywall.cli.output import print_json, print_table
from memorywall.cli.setting_options import DATA
from memorywall.cli.signals import handle_sigterm
from memorywall.cli.task_output import describe_policy
from memorywall.records.errors import ConfigurationError, StoreLockedError
from memorywall.service.requests.validation import check_agent
from memorywall.workflow import Workflow, read_workflow

if TYPE_CHECKING:
    from memorywall.workflow_execution.agent_clients import AgentClients
    from memorywall.workflow_execution.results import WorkflowResult

_FILE = click.Path(path_type=Path, dir_okay=False)


def _summary(workflow: Workflow) -> dict[str, Any]:
    return {
        "name": workflow.name,
        "version": workflow.version,
        "semantic_namespaces": [
            {
                "name": one.name,
                "file": None if one.file is None else str(one.file),
                "entries": len(one.entries),
            }
            for one in workflow.memory.semantic_namespaces
        ],
        "agents": list(workflow.agents.values()),
        "plan": workflow.plan,
    }


def _print_plan(workflow: Workflow) -> None:
    click.echo(f"{workflow.path} is valid: {workflow.name}")
    click.echo()
    print_table(
        ["step", "agent", "after", "part of", "function", "working memory"],
        (
            [
                step.task,
                step.agent,
                ", ".join(step.depends_on),
                step.parent,
                step.function or "stub",
                describe_policy(step.memory_policy),
            ]
            for step in workflow.plan
        ),
    )
    namespaces = workflow.memory.semantic_namespaces
    if namespaces:
        click.echo()
        print_table(
            ["semantic namespace", "entries", "file"],
            ([one.name, len(one.entries), one.file] for one in namespaces),
            widest=None,
        )


@click.group()
def command() -> None:
    """Check a YAML workflow file, and run it with local workers."""


@command.command(short_help="Check a file and the files it loads.")
@print_result(_print_plan, lambda workflow: print_json(_summary(workflow)))
@click.argument("file", type=_FILE)
def validate(file: Path) -> Workflow:
    """Check FILE and the files it loads, and show its plan. Nothing is run or imported."""
    return read_workflow(file)


@command.command(short_help="Run a file.")
@click.option("--url", envvar="MEMORYWALL_URL", help="The server.")
@click.option(
    "--key", envvar="MEMORYWALL_API_KEY", help="The API key; its principal is the coordinator."
)
@click.option("--data", type=DATA, help="Run in this data directory; needs no server.")
@click.option(
    "--coordinator",
    default="coordinator",
    show_default=True,
    help="The coordinator, with --data.",
)
@click.option("--traceback", is_flag=True, help="Show the traceback of a failed function.")
@json_option
@click.argument("file", type=_FILE)
def run(
    url: str | None,
    key: str | None,
    data: Path | None,
    coordinator: str,
    traceback: bool,
    as_json: bool,
    file: Path,
) -> None:
    """Run FILE: create its intent and tasks, and execute them in the order of the plan.

    FILE names the functions of agents; an agent without a function is a stub. The exit code is 1
    unless every step is completed.

    With a server the key needs memory.read, memory.write and act_as, and tenant.admin if FILE sets
    capacities or pinned namespaces. With a data directory no key is needed.
    """
    from memorywall.workflow_execution.runner import run_workflow

    workflow = read_workflow(file)
    with (
        handle_sigterm(),
        # The output of functions must not mix with the JSON.
        redirect_stdout(sys.stderr if as_json else sys.stdout),
        _telling_what_workers_log(traceback),
        _connections(url, key, data, coordinator) as connections,
    ):
        outcome = run_workflow(workflow, connections, progress=True)
    if as_json:
        print_json(outcome)
    else:
        where = [] if data is None else ["--data", str(data), "--agent", coordinator]
        _print_outcome(outcome, where)
    if not outcome.completed:
        raise SystemExit(1)


@contextmanager
def _connections(
    url: str | None, key: str | None, data: Path | None, coordinator: str
) -> Iterator[AgentClients]:
    from memorywall.workflow_execution.agent_clients import local_connections, server_connections

    if data is None and key is None:
        raise ConfigurationError(
            "give --data for a directory, or --key (or MEMORYWALL_API_KEY) for a server"
        )
    if data is None:
        with server_connections(url, key or "") as connections:
            yield connections
        return
    try:
        with local_connections(data, check_agent("--coordinator", coordinator)) as connections:
            yield connections
    except StoreLockedError:
        raise StoreLockedError(
            "a server has this directory open; run on it with --url and --key instead of --data"
        ) from None


@contextmanager
def _telling_what_workers_log(traceback: bool) -> Iterator[None]:
    """Prints warnings of workers on standard error. Failures are part of the result, so they are
    printed only with a traceback."""
    log = logging.getLogger("memorywall.worker")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("memorywall: %(message)s"))
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: traceback or record.exc_info is None)
    log.addHandler(handler)
    propagates, log.propagate = log.propagate, False
    try:
        yield
    finally:
        log.propagate = propagates
        log.removeHandler(handler)


def _print_outcome(outcome: WorkflowResult, where: list[str]) -> None:
    click.echo(f"{outcome.name}: {'completed' if outcome.completed else 'not completed'}")
    click.echo()
    print_table(
        ["step", "agent", "status", "outputs", "task"],
        (
            [one.step, one.agent, one.status, ", ".join(one.outputs), one.task_id]
            for one in outcome.steps
        ),
    )
    click.echo()
    for one in outcome.steps:
        if one.reason is not None:
            click.echo(f"{one.step}: {' '.join(one.reason.split())}")
    log = shlex.join(["memorywall", "intents", "log", *where, outcome.intent_id])
    click.echo(f"The log: {log}")
