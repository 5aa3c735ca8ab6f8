"""The `memorywall` command. The module of a command is imported when the command runs."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from memorywall.cli.examples import add_examples
from memorywall.cli.messages import suggest_option
from memorywall.records.argument_names import nearest_name
from memorywall.records.errors import MemorywallError
from memorywall.version import __version__

_COMMANDS = {
    "init": "Create a data directory with a tenant and an administrator key.",
    "serve": "Start the server.",
    "status": "Show the state of a server or of a data directory.",
    "doctor": "Check an installation and say what to do about problems.",
    "config": "Show the settings and where each value comes from.",
    "migrate": "Bring the schema of a PostgreSQL database up to date.",
    "copy": "Copy everything from one store to another.",
    "backup": "Write, verify and list backups.",
    "restore": "Restore a backup into an empty store.",
    "keys": "Create, list, rotate and revoke API keys.",
    "tenants": "Create and list tenants.",
    "capacity": "Show or set an agent's episodic capacity.",
    "forget": "Erase an agent or a person.",
    "groups": "List and change groups of principals.",
    "namespaces": "List shared namespaces and change their permissions.",
    "tiers": "Show or narrow the tiers, or evict their entries.",
    "worthiness": "Show or set which texts are worth keeping.",
    "kinds": "Show the kinds of values, or the JSON Schema of one.",
    "schemas": "Show, set and check JSON Schemas of a namespace.",
    "remember": "Store a text.",
    "recall": "Find the memory that answers a question.",
    "get": "Show one entry.",
    "set": "Create or change an entry.",
    "put": "Create an entry, or replace its value.",
    "merge": "Merge a patch into the value of an entry.",
    "query": "List entries that match a filter.",
    "history": "List the versions of an entry.",
    "search": "Find entries by words and meaning.",
    "promote": "Promote an entry to a tier that lasts longer.",
    "promotions": "Show what was promoted and why, and take it back.",
    "episodes": "Recall episodes: what was tried, and how it ended.",
    "profile": "Show what memory says about a person.",
    "supersede": "State that another entry supersedes one.",
    "reinstate": "Take back that an entry was superseded.",
    "correct": "Replace a wrong text, and withdraw what was derived from it.",
    "retract": "Withdraw a wrong entry, and what was derived from it.",
    "undo": "Take back a correction or retraction.",
    "confirm": "Confirm the value of an entry.",
    "attachments": "List, add, save and delete files of entries and intents.",
    "delete": "Delete an entry, or all entries that match a filter.",
    "facts": "Store facts, and find them by patterns and walks.",
    "claims": "Claim keys of shared state.",
    "intents": "List and create intents, read their logs.",
    "tasks": "List, create and assign tasks.",
    "sessions": "Create, continue, show and end sessions.",
    "context": "Compile what a model needs for its next answer.",
    "workflow": "Check or run a YAML workflow file.",
    "openwop": "Show what is offered to OpenWOP, or run a workflow.",
    "events": "Show or follow an agent's event stream.",
    "watch": "Follow the changes of memory.",
    "jobs": "Show, run, pause and resume background jobs.",
    "mcp": "Serve memory to an agent by the Model Context Protocol.",
    "connect": "Give Claude Code, Codex or Cursor this memory.",
    "hook": "Recall and keep turns, as the hook of a coding agent.",
    "call": "Run any operation by its name.",
    "summary": "Show how much an agent remembers.",
    "export": "Write entries as JSON Lines.",
    "import": "Read entries from JSON Lines.",
    "import-chat": "Import the messages of a chat.",
    "verify": "Replay the event log and compare it with the store.",
    "completion": "Print the completion script of a shell.",
}

_TOGETHER = {
    **dict.fromkeys(("get", "set", "put", "merge", "history", "remember"), "entry_commands"),
    **dict.fromkeys(("supersede", "reinstate"), "entry_commands"),
    **dict.fromkeys(("correct", "retract", "undo", "confirm"), "correction_commands"),
    **dict.fromkeys(("recall", "search"), "search_commands"),
    "promote": "promotions_command",
    **dict.fromkeys(("episodes", "profile"), "episode_commands"),
}
"""The modules of commands that share one; the module of another command has its name."""

_OTHER_WORDS = {
    "add": "remember",
    "count": "query --count",
    "del": "delete",
    "delete-all": "forget",
    "exists": "get",
    "expire": "put --ttl",
    "get-all": "query",
    "hset": "merge",
    "info": "status",
    "list": "query",
    "ls": "query",
    "ping": "status",
    "reset": "forget",
    "rm": "delete",
    "scan": "query",
    "subscribe": "watch",
    "ttl": "put --ttl",
    "update": "put",
    "upload": "attachments add",
    "version": "--version",
}
"""The words of other tools, and our commands for them."""


class _Commands(click.Group):
    """Finds commands by name; the table contains the help texts, so that help imports no module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = _TOGETHER.get(cmd_name, f"{cmd_name.replace('-', '_')}_command")
        command: click.Command = import_module(f"memorywall.cli.{module}").command
        if cmd_name in _TOGETHER:
            assert isinstance(command, click.Group)  # noqa: S101 - the commands of the module
            command = command.commands[cmd_name]
        command.short_help = _COMMANDS[cmd_name]
        add_examples(command, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggests a command for a name that is none of them."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            known = _OTHER_WORDS.get(args[0]) or nearest_name(args[0], _COMMANDS)
            if known is None:
                raise
            raise click.UsageError(
                f"No such command {args[0]!r}. Do you mean `memorywall {known}`?", ctx
            ) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands from the table; the default imports every module."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes the name of a command from the table; the default imports every module."""
        options = click.Command.shell_complete(self, ctx, incomplete)
        names = (name for name in _COMMANDS if name.startswith(incomplete))
        return [*(CompletionItem(name, help=_COMMANDS[name]) for name in names), *options]


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="memorywall")
def commands() -> None:
    """Governed memory for AI agents: five isolated tiers behind one service layer."""


def main() -> None:
    """Runs the command line. An error prints one line on standard error and exits with code 1."""
    # The command of httpx, which no client uses, imports a library for terminals and takes a tenth
    # of the start of a command; httpx does without it.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    try:
        commands.main(prog_name="memorywall", standalone_mode=False)
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption):
            error = suggest_option(error)
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        if isinstance(error.filename, str | bytes):
            # "Not a directory" alone does not say what to look at.
            reason = f"{os.fsdecode(error.filename)}: {reason}"
        click.echo(f"memorywall: {reason}", err=True)
        sys.exit(1)
    except MemorywallError as error:
        click.echo(f"memorywall: {error.detail}", err=True)
        sys.exit(1)
