"""Plain commands: each calls one method of the client and prints what it returns.

A row says which; `operation` is the operation of the table that the method asks for, whose fields
are the arguments of the command. `tests/cli/test_plain_commands.py` checks every row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import click

from memorywall.cli.client_command import Client, Show, client_command
from memorywall.cli.output import print_json
from memorywall.cli.table_options import given_options
from memorywall.wire.operation import Operation
from memorywall.wire.operations import OPERATIONS_BY_NAME
from memorywall.wire.parameters import field_names


@dataclass(frozen=True, slots=True)
class Plain:
    """The row of a plain command.

    usage: its name and its arguments in capitals, as `add GROUP PRINCIPAL`. An argument is the
        field of the operation with this name, with or without `_id`; ID is the last field of the
        path, and AGENT=assigned_agent names the field
    method: the method of the client, as `groups.add`; it gets the arguments in order, and given
        options by name
    operation: the operation that the method asks for
    help: what the command does
    show: prints the result for people; default: nothing is printed
    options: its options besides those of a client; default: none
    short_help: the line in the help of the group; default: the first sentence of `help`
    done: a sentence that is printed at the end, with the arguments by name; default: none
    show_json: prints the result with `--json`; default: one JSON document
    """

    usage: str
    method: str
    operation: str
    help: str
    show: Show | None = None
    options: Sequence[Callable[[Any], Any]] = ()
    short_help: str | None = None
    done: str = ""
    show_json: Show = print_json

    @property
    def arguments(self) -> dict[str, str]:
        """The metavars of the arguments by the names of their fields, in order."""
        operation = OPERATIONS_BY_NAME[self.operation]
        return dict(_argument(operation, word) for word in self.usage.split()[1:])


class PlainCommand(click.Command):
    """The command of a row."""

    row: Plain


def add_plain_commands(group: click.Group, *rows: Plain) -> None:
    """Adds the command of each row to a group."""
    for row in rows:
        _add(group, row)


def _add(group: click.Group, row: Plain) -> None:
    arguments = row.arguments

    def call(client: Client, **given: Any) -> Any:
        named = {field: given.pop(field) for field in arguments}
        result = attrgetter(row.method)(client)(*named.values(), **given_options(given))
        if row.done:
            click.echo(row.done.format(**named))
        return result

    call.__doc__ = row.help
    parameters = [click.argument(field, metavar=word) for field, word in arguments.items()]
    for add in reversed([*row.options, *parameters]):
        add(call)
    made = client_command(
        group,
        row.show,
        show_json=row.show_json,
        name=row.usage.split()[0],
        short_help=row.short_help,
        cls=PlainCommand,
    )(call)
    assert isinstance(made, PlainCommand)  # noqa: S101 - it has been made as one
    made.row = row


def _argument(operation: Operation, word: str) -> tuple[str, str]:
    """Returns the field of an argument and its metavar. Raises KeyError."""
    metavar, _, field = word.partition("=")
    structs = [one for one in (operation.query, operation.body) if one is not None]
    fields = [*operation.path_parameters, *(name for one in structs for name in field_names(one))]
    named = {field.removesuffix("_id").upper(): field for field in reversed(fields)}
    named |= {"ID": operation.path_parameters[-1]} if operation.path_parameters else {}
    return field or named[metavar], metavar
