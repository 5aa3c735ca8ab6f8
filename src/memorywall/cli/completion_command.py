"""`memorywall completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_MEMORYWALL_COMPLETE"
"""The variable with which the script asks for completions; click derives the same name."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes commands and options in SHELL.

    The start-up file of the shell evaluates the script, as in the example.
    """
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click has these three
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "memorywall", _VARIABLE).source())
