"""The `memorywall` command. A command's module is imported only when it is run."""

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
    "backup": "Write a backup of a store, while it serves.",
    "restore": "Fill an empty store from a backup.",
    "keys": "Create, list and revoke API keys.",
    "tenants": "Create and list tenants.",
    "capacity": "Show or set an agent's episodic capacity.",
    "forget": "Forget an agent: delete its memory and destroy its data keys.",
    "get": "Show one entry.",
    "set": "Create or change an entry.",
    "query": "List entries that match a filter.",
    "search": "Find entries by words and meaning.",
    "delete": "Delete an entry, or everything that matches a filter.",
    "claims": "Claim keys of shared state, for one agent to work on.",
    "intents": "Look at intents, make them, read their logs.",
    "tasks": "Look at tasks, make them, give them to agents.",
    "workflow": "Check or run a YAML workflow file.",
    "events": "Show or follow an agent's event stream.",
    "summary": "Show how much an agent remembers.",
    "export": "Write entries as JSON Lines.",
    "import": "Read entries from JSON Lines.",
    "import-chat": "Keep the messages of a chat.",
    "verify": "Replay the event log and compare it with what is stored.",
}


class _Commands(click.Group):
    """Finds commands by name; the help texts stand in the table so that help imports nothing."""

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
    """Governed memory for AI agents: five walled tiers behind one door."""


def main() -> None:
    """Runs the command line. An error is one clear line on standard error and exit code 1."""
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
