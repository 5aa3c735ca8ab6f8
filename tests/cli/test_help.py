"""`--help` of every command, and command lines that cannot be understood."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from memorywall import __version__
from memorywall.cli.main import commands
from tests.cli.shell import misuse, refuse, succeed

EXPECTED = [
    "init", "serve", "status", "doctor", "config", "migrate", "copy", "backup", "restore", "keys",
    "tenants", "capacity", "forget", "groups", "namespaces", "tiers", "worthiness", "kinds",
    "schemas",
    "remember", "recall", "get", "set", "put", "merge", "query", "history", "search",
    "promote", "promotions", "episodes", "profile",
    "supersede", "reinstate", "correct", "retract", "undo", "confirm", "attachments", "delete",
    "facts", "claims", "intents", "tasks", "sessions", "context", "workflow", "openwop",
    "events", "watch", "jobs", "mcp", "connect", "hook", "call", "summary", "export", "import",
    "import-chat",
    "verify", "completion",
]  # fmt: skip
OF_A_STORE = {
    "init", "serve", "doctor", "migrate", "copy", "backup", "restore", "keys", "tenants",
    "capacity", "verify",
}  # fmt: skip
"""Commands that open a store whatever their options are."""
LARGE = ("memorywall.assembly", "memorywall.sdk.client", "memorywall.storage.port")
"""Modules of a store and of the client, which import most of the others."""


def _all_commands() -> list[tuple[str, ...]]:
    """Every command and subcommand, as the words a user types."""
    found: list[tuple[str, ...]] = []
    context = click.Context(commands)
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        found.append((name,))
        if isinstance(command, click.Group):
            found.extend((name, sub) for sub in command.list_commands(context))
    return found


def test_the_commands_are_the_ones_tested_here() -> None:
    assert [words[0] for words in _all_commands() if len(words) == 1] == EXPECTED


def test_help_lists_every_command_with_its_description() -> None:
    text = succeed("--help")
    lines = text.partition("Commands:")[2].strip().splitlines()
    assert [line.split()[0] for line in lines] == EXPECTED
    assert all(line.rstrip().endswith(".") for line in lines)
    assert succeed("-h") == text


@pytest.mark.parametrize("words", _all_commands(), ids=" ".join)
def test_every_command_explains_itself(words: tuple[str, ...]) -> None:
    text = succeed(*words, "--help")
    assert text.startswith(f"Usage: memorywall {' '.join(words)} ")
    assert max(map(len, text.splitlines())) <= 80
    command: click.Command | None = commands
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    assert command.help
    first_words = " ".join(command.help.split()[:4])
    assert first_words in " ".join(text.split())
    for parameter in command.params:
        for option in parameter.opts if isinstance(parameter, click.Option) else ():
            assert option in text


def test_a_command_imports_a_client_or_a_store_only_when_it_runs() -> None:
    program = f"""
import sys
from click import Context
from memorywall.cli.main import commands
for name in {[name for name in EXPECTED if name not in OF_A_STORE]}:
    commands.get_command(Context(commands), name)
    assert not (found := sys.modules.keys() & {LARGE}), (name, found)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_version_is_the_package_s() -> None:
    assert succeed("--version") == f"memorywall, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["keys", "nosuch"], "No such command 'nosuch'"),
        (["get"], "Missing argument 'NAME'"),
        (["set", "ns", "key"], "Missing argument 'VALUE'"),
        (["keys", "create", "--data", "d"], "Missing option '--agent'"),
        (["query", "--limit", "0"], "--limit"),
        (["query", "--limit", "1001"], "--limit"),
        (["query", "--type", "nosuch"], "'nosuch' is not one of"),
        (["set", "a", "b", "{}", "--priority", "urgent"], "'urgent' is not one of"),
        (["events", "--after", "-1"], "--after"),
        (["keys", "create", "--data", "d", "--agent", "a", "--permission", "all"], "'all'"),
        (["capacity", "--data", "d", "--agent", "a", "0"], "0 is not in the range"),
        (["serve", "--port", "http"], "'http' is not a valid integer"),
        (["serve", "--log-level", "loud"], "'loud' is not one of"),
        (["serve", "--recall-memory", "0"], "--recall-memory"),
        (["import", "no-such-file.jsonl"], "no-such-file.jsonl"),
        (["export", "--output", "no/such/directory/file"], "no/such/directory/file"),
        (["query", "--nosuch"], "unknown options: `--nosuch`\n"),
        (["call", "query_entries", "--subject", "ana"], "`--subject` (do you mean `--about`?)"),
        (["query", "--usr", "ana"], "unknown options: `--usr` (do you mean `--user`?)"),
        (["query", "--user-id", "ana"], "unknown options: `--user-id` (do you mean `--user`?)"),
        (["sessions", "list", "--use", "ana"], "`--use` (do you mean `--user`?)"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_a_command_line_that_makes_no_sense_is_explained(
    arguments: list[str], said: str, tmp_path: object
) -> None:
    text = misuse(*arguments, cwd=tmp_path)
    assert said in text
    assert text.startswith("Usage: memorywall ")


@pytest.mark.parametrize("command", [["keys", "create", "--agent", "a"], ["verify"]], ids=" ".join)
def test_where_the_memory_is_must_be_said(command: list[str]) -> None:
    assert refuse(*command).startswith("give --data for a directory,")


def test_without_a_command_the_help_is_shown() -> None:
    text = misuse()
    assert "Commands:" in text
