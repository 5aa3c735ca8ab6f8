"""`memorywall openwop`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from memorywall.cli.client_command import Client, client_command
from memorywall.cli.output import as_table, print_json
from memorywall.records.errors import ValidationError


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
@click.option("--inputs", default="{}", metavar="JSON", help="The variables of the run.")
def run(client: Client, file: Path, inputs: str) -> None:
    """Put the workflow in FILE into the workspace, run it, and show the run.

    The exit code is 1 if the run fails.
    """
    workflow = _read_object("FILE", file.read_bytes())
    client.openwop.install(file.stem, workflow)
    ran = client.openwop.run(file.stem, _read_object("--inputs", inputs.encode()))
    print_json(ran)
    if ran.status == "failed":
        sys.exit(1)


def _read_object(name: str, text: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ValidationError(f"`{name}` must be a JSON object") from None
