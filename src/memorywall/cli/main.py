"""The `memorywall` command. The module of a command is imported when the command runs."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from memorywall.records.errors import MemorywallError
from memorywall.version import __version__

_COMMANDS = {
    "serve": "Start the server.",
    "migrate": "Bring the schema of a PostgreSQL database up to date.",
    "copy": "Copy everything from one store to another.",
    "backup": "Write, verify and list backups.",
    "restore": "Restore a backup into an empty store.",
    "keys": "Create, list and revoke API keys.",
    "tenants": "Create and list tenants.",
    "capacity": "Show or set an agent's episodic capacity.",
    "forget": "Erase an agent or a person.",
    "tiers": "Show the tiers and their properties, or narrow one.",
    "get": "Show one entry.",
    "set": "Create or change an entry.",
    "put": "Create an entry, or replace its value.",
    "query": "List entries that match a filter.",
    "history": "List the versions of an entry.",
    "search": "Find entries by words and meaning.",
    "delete": "Delete an entry, or all entries that match a filter.",
    "claims": "Claim keys of shared state.",
    "intents": "List and create intents, read their logs.",
    "tasks": "List, create and assign tasks.",
    "workflow": "Check or run a YAML workflow file.",
    "events": "Show or follow an agent's event stream.",
    "jobs": "Show, run, pause and resume background jobs.",
    "call": "Run any operation by its name.",
    "summary": "Show how much an agent remembers.",
    "export": "Write entries as JSON Lines.",
    "import": "Read entries from JSON Lines.",
    "import-chat": "Import the messages of a chat.",
    "verify": "Replay the event log and compare it with the store.",
}


class _Commands(click.Group):
    """Finds commands by name; the table contains the help texts, so that help imports no module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = f"memorywall.cli.{cmd_name.replace('-', '_')}_command"
        command: click.Command = import_module(module).command
        command.short_help = _COMMANDS[cmd_name]
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="memorywall")
def commands() -> None:
    """Governed memory for AI agents: five isolated tiers behind one service layer."""


def main() -> None:
    """Runs the command line. An error prints one line on standard error and exits with code 1."""
    try:
        commands.main(prog_name="memorywall", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except OSError as error:
        click.echo(f"memorywall: {error.strerror or type(error).__name__}", err=True)
        sys.exit(1)
    except MemorywallError as error:
        click.echo(f"memorywall: {error.detail}", err=True)
        sys.exit(1)
