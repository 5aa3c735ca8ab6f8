"""`memorywall correct`, `retract`, `undo` and `confirm`: what is wrong, and what is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.entries import print_entry, print_entry_json
from memorywall.cli.entry_fields import read_value
from memorywall.cli.output import as_fields

if TYPE_CHECKING:
    from memorywall.sdk.corrections import CorrectionResult
    from memorywall.sdk.models import MemoryEntry


@click.group()
def command() -> None:
    """The commands that correct memory, each of which `main` has by its own name."""


_version_option = click.option("--version", type=int, help="Only if the entry has this version.")
_reason_option = click.option("--reason", required=True, help="Why; kept with the entry.")
_CORRECTED = as_fields(
    "entry=entry.id", "version=entry.version", "state=entry.state", "value=entry.text",
    "withdrawn", "reinstated", "not readable=hidden",
)  # fmt: skip


def _read_right(given: dict[str, Any]) -> None:
    text, value = " ".join(given.pop("text")), given.pop("value")
    if bool(text) == (value is not None):
        raise click.UsageError("give the right TEXT or --value, and not both")
    given["right"] = text or read_value(value, "--value")


@memory_command(command, _CORRECTED, prepare=_read_right)
@_reason_option
@_version_option
@click.option("--value", metavar="JSON", help="The whole right value, @FILE, or -.")
@click.argument("entry_id", metavar="ID")
@click.argument("text", nargs=-1)
def correct(client: Client, entry_id: str, right: Any, **given: Any) -> CorrectionResult:
    """Replace the wrong text of the entry ID, and withdraw what was derived from it."""
    return client.memory.correct(entry_id, right, **given)


@memory_command(command, _CORRECTED)
@_reason_option
@_version_option
@click.argument("entry_id", metavar="ID")
def retract(client: Client, entry_id: str, **given: Any) -> CorrectionResult:
    """Withdraw the wrong entry ID, and what was derived from it."""
    return client.memory.retract(entry_id, **given)


@memory_command(command, _CORRECTED)
@_version_option
@click.argument("entry_id", metavar="ID")
def undo(client: Client, entry_id: str, version: int | None) -> CorrectionResult:
    """Take back the retraction or the latest correction of the entry ID."""
    return client.memory.undo(entry_id, version=version)


@memory_command(command, print_entry, show_json=print_entry_json)
@_version_option
@click.argument("entry_id", metavar="ID")
def confirm(client: Client, entry_id: str, version: int | None) -> MemoryEntry:
    """Confirm the value of the entry ID, as a person or as the validator of its namespace."""
    return client.memory.confirm(entry_id, version=version)
