"""Commands that have subcommands, as one agent runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.cli import shell
from tests.cli.shell import Printed, Shell


@dataclass(frozen=True, slots=True)
class Group(Shell):
    """A `Shell` for the subcommands of one command, which take the options of a client."""

    name: str = ""

    def run(self, *arguments: str, **options: Any) -> Printed:
        return shell.run(*self._line(arguments), **options)

    def succeed(self, *arguments: str, **options: Any) -> str:
        return shell.succeed(*self._line(arguments), **options)

    def refuse(self, *arguments: str, **options: Any) -> str:
        return shell.refuse(*self._line(arguments), **options)

    def _line(self, arguments: Sequence[str]) -> list[str]:
        subcommand, *rest = arguments
        return [self.name, subcommand, *self.where, *rest]


def group(name: str) -> Callable[[Shell], Group]:
    """Makes of an agent's shell the one for a command's subcommands."""
    return lambda agent: Group(agent.agent, agent.where, name)


claims = group("claims")
intents = group("intents")
tasks = group("tasks")


def fields(printed: str) -> dict[str, str]:
    """What a command prints of one thing, by the names of its fields; no table after it."""
    lines = printed.partition("\n\n")[0].splitlines()
    return {name: text for name, _, text in (_split(line) for line in lines)}


def _split(line: str) -> tuple[str, str, str]:
    name, space, text = line.partition(" ")
    return name, space, text.strip()
