"""A user at a shell: whose memory the commands are about, and what they printed."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.backend import environment_of
from tests.support.process import run_cli

Printed = subprocess.CompletedProcess[str]

# Colours, carriage returns and the like are for terminals; what is piped must have none of them.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def environment(*arguments: str, **variables: str) -> dict[str, str]:
    """The environment of these tests without a user's own settings, and with `variables`.

    On PostgreSQL it tells what the store of the data directory is that `arguments` name.
    """
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MEMORYWALL_")}
    # Set by what runs the tests in parallel; output is as wide as without a terminal.
    kept.pop("COLUMNS", None)
    for option, data in itertools.pairwise(arguments):
        if option == "--data" and Path(data).is_absolute():
            kept.update(environment_of(Path(data)))
    return {**kept, **variables}


def run(*arguments: str, variables: dict[str, str] | None = None, **options: Any) -> Printed:
    """Runs a command, whatever comes of it, with nothing on its standard input."""
    surroundings = environment(*arguments, **(variables or {}))
    printed = run_cli(*arguments, check=False, env=surroundings, **options)
    assert "Traceback" not in printed.stderr + printed.stdout, printed.stderr
    assert not _CONTROL.search(printed.stdout), printed.stdout
    return printed


def succeed(*arguments: str, **options: Any) -> str:
    """What a command that works prints on standard output."""
    printed = run(*arguments, **options)
    assert printed.returncode == 0, printed.stderr
    return printed.stdout


def refuse(*arguments: str, **options: Any) -> str:
    """The one line a command that fails prints, without the program's name."""
    printed = run(*arguments, **options)
    assert printed.returncode == 1, (printed.returncode, printed.stdout, printed.stderr)
    assert printed.stdout == ""
    lines = printed.stderr.splitlines()
    assert len(lines) == 1, printed.stderr
    program, _, text = lines[0].partition(": ")
    assert program == "memorywall", lines[0]
    assert text
    return text


def misuse(*arguments: str, **options: Any) -> str:
    """What is said about a command line that cannot be understood."""
    printed = run(*arguments, **options)
    assert printed.returncode == 2, (printed.returncode, printed.stdout, printed.stderr)
    assert printed.stdout == ""
    return printed.stderr


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs the commands that take a client for one agent.

    where: the options that say where its memory is
    """

    agent: str
    where: Sequence[str]

    def run(self, *arguments: str, **options: Any) -> Printed:
        command, *rest = arguments
        return run(command, *self.where, *rest, **options)

    def succeed(self, *arguments: str, **options: Any) -> str:
        command, *rest = arguments
        return succeed(command, *self.where, *rest, **options)

    def refuse(self, *arguments: str, **options: Any) -> str:
        command, *rest = arguments
        return refuse(command, *self.where, *rest, **options)

    def json(self, *arguments: str, **options: Any) -> Any:
        """What a command prints with --json."""
        return json.loads(self.succeed(*arguments, "--json", **options))

    def json_lines(self, *arguments: str, **options: Any) -> list[dict[str, Any]]:
        """What a command prints that prints JSON Lines."""
        return [json.loads(line) for line in self.succeed(*arguments, **options).splitlines()]


def columns(table: str) -> list[str]:
    """The headings of a table for people."""
    return table.splitlines()[0].split()


def new_directory(data: Path, agent: str) -> str:
    """Makes a data directory by making the first key in it; returns the key."""
    return succeed("keys", "create", "--data", str(data), "--agent", agent).strip()
