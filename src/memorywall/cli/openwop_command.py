"""`memorywall openwop`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from memorywall.cli.client_command import Client, client_command
from memorywall.cli.entry_fields import read_value
from memorywall.cli.output import as_table, print_json


@click.group()
def command() -> None:
    """Show what is offered to OpenWOP, or run a workflow."""


_show_families = as_table(
    ("family", lambda one: one["family"]),
    ("offered", lambda one: "yes" if one["offered"] else "no"),
    ("why not", lambda one: one["why"]),
    ("rule", lambda one: one["rule"]),
    widest=80,
)


@client_command(command, _show_families)
def describe(client: Client) -> list[dict[str, Any]]:
    """Show the families of OpenWOP: whether this host offers them, and why not."""
    from memorywall.openwop.families import describe as describe_families

    return describe_families(client.openwop.discover())


@client_command(command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--inputs",
    default="{}",
    metavar="JSON",
    help="The variables of the run: JSON, @FILE, or - for standard input.",
)
def run(client: Client, file: Path, inputs: str) -> None:
    """Put the workflow in FILE into the workspace, run it, and show the run.

    The exit code is 1 if the run fails.
    """
    workflow, variables = read_value(f"@{file}", "FILE"), read_value(inputs, "--inputs")
    client.openwop.install(file.stem, workflow)
    ran = client.openwop.run(file.stem, variables)
    print_json(ran)
    if ran.status == "failed":
        sys.exit(1)
