"""The examples at the end of each command's help, and the completion scripts."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path

import click
import pytest

import memorywall
from memorywall.cli.call_command import OperationCommand
from memorywall.cli.examples import EXAMPLES
from memorywall.cli.main import commands
from memorywall.wire.operations import OPERATIONS
from tests.cli.shell import succeed

_DOCS = Path(__file__).parents[2] / "docs"
_FILES = (
    "customer.json",
    "monday.backup",
    "flow.yaml",
    "learned.jsonl",
    "chat.jsonl",
    "memory.jsonl",
    "hello.json",
)


def _leaves(
    group: click.Group = commands, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something by itself, with the words a user types."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _leaves(command, (*words, name))
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join((*words, name)), command


def _parse(words: list[str]) -> str:
    """Parses a command line as the program does and runs nothing; returns the command's name."""
    with ExitStack() as opened:
        context = opened.enter_context(commands.make_context("memorywall", list(words)))
        return _parse_rest(context, opened)


def _parse_rest(context: click.Context, opened: ExitStack) -> str:
    group, path = context.command, []
    rest = [*context._protected_args, *context.args]
    while isinstance(group, click.Group) and rest:
        name, command, rest = group.resolve_command(context, rest)
        assert command is not None
        path.append(str(name))
        # Leaving the context closes the files that it has opened.
        context = opened.enter_context(command.make_context(name, rest, parent=context))
        group, rest = command, [*context._protected_args, *context.args]
    if path == ["call"]:
        record = next(one for one in OPERATIONS if one.name == context.params["operation"])
        fields = [one for one in context.params["fields"] if one != "--help"]
        if fields == list(context.params["fields"]):
            OperationCommand(record).make_context("call", fields)
    return " ".join(path)


def test_every_command_has_an_example_and_no_example_is_of_another() -> None:
    assert set(EXAMPLES) == {name for name, _ in _leaves()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_parses(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "backups").mkdir()
    for file in _FILES:
        (tmp_path / file).touch()
    for example in EXAMPLES[name]:
        words = shlex.split(example.partition(" > ")[0])
        assert _parse(words) == name


def test_each_command_of_the_everyday_actions_parses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (_DOCS / "everyday.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").touch()
    lines = re.findall(r"`memorywall ([^`]+)`", page)
    assert len(lines) > 30
    for line in lines:
        if not line.startswith("call NAME"):
            # A backup is written to a file that does not exist yet.
            assert _parse(shlex.split(line)), line


def test_each_method_of_the_everyday_actions_exists() -> None:
    page = (_DOCS / "everyday.md").read_text(encoding="utf-8")
    methods = set(re.findall(r"`client\.([\w.]+)\(", page))
    assert len(methods) > 15
    with memorywall.Client("http://localhost") as client:
        for method in methods:
            assert callable(attrgetter(method)(client)), method


def test_an_example_that_does_not_parse_is_found() -> None:
    for wrong in ("keys create --data d", "status --nosuch", "tiers set nosuch"):
        with pytest.raises(click.UsageError):
            _parse(shlex.split(wrong))


@pytest.mark.parametrize("words", [("keys",), ("keys", "create"), ("tiers",), ("serve",)])
def test_the_help_ends_with_the_examples(words: tuple[str, ...]) -> None:
    _, found, examples = succeed(*words, "--help").partition("\n  Examples:\n")
    assert found
    lines = examples.splitlines()
    assert lines
    assert all(line.startswith(f"    memorywall {' '.join(words)}") for line in lines)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "memorywall s",
            {"serve", "sessions", "status", "schemas", "set", "search", "summary", "supersede"},
        ),
        (
            "memorywall keys ",
            {"create", "list", "revoke", "rotate", "rotate-data", "rotate-digest", "rotate-master"},
        ),
        ("memorywall keys create --per", {"--permission"}),
        ("memorywall keys create --kind u", {"user"}),
        ("memorywall completion ", {"bash", "zsh", "fish"}),
        ("memorywall config show --pool", {"--pool-size"}),
    ],
)
def test_a_shell_gets_completions_from_the_parser(line: str, expected: set[str]) -> None:
    variables = {
        "_MEMORYWALL_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    # The variables decide; a command line without arguments is run in a process.
    printed = succeed("--version", variables=variables)
    assert {one.partition(",")[2] for one in printed.splitlines()} == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_asks_the_program(shell: str) -> None:
    script = succeed("completion", shell)
    assert f"_MEMORYWALL_COMPLETE={shell}_complete" in script


def test_bash_accepts_its_script() -> None:
    script = succeed("completion", "bash") + "\ncomplete -p memorywall"
    ended = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True
    )
    assert ended.stdout.endswith(" memorywall\n")
