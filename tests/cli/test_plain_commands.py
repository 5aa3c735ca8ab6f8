"""The rows of plain commands: each calls a method of the client that asks for its operation, and
shows every part of the reply that its columns name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from operator import attrgetter
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner
from msgspec import inspect

from memorywall.cli import client_command
from memorywall.cli.main import commands
from memorywall.cli.plain_commands import PlainCommand
from memorywall.sdk.client import Client
from memorywall.sdk.effects import Open, Request, Response
from memorywall.sdk.executors import BlockingDriver, BlockingStream
from memorywall.wire.operations import OPERATIONS_BY_NAME


def _plain_commands(group: click.Group = commands) -> Iterator[PlainCommand]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, PlainCommand):
            yield command
        elif isinstance(command, click.Group):
            yield from _plain_commands(command)


COMMANDS = list(_plain_commands())
each = pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.row.method)


class _Recorder(BlockingDriver):
    """Answers each request with a reply in which every field has a value."""

    is_closed = False

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    def send(self, request: Request) -> Response:
        self.requests.append(request)
        record = request.record
        body = b"" if record.reply is None else msgspec.json.encode(_sample(record.reply))
        return Response(record.status, body)

    def open(self, step: Open) -> tuple[Response, BlockingStream]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def _sample(kind: Any) -> Any:
    """A value of a type, in the form that JSON has for it."""
    kind = kind if isinstance(kind, inspect.Type) else inspect.type_info(kind)
    match kind:
        case inspect.Metadata():
            return _sample(kind.type)
        case inspect.UnionType():
            return _sample(next(t for t in kind.types if not isinstance(t, inspect.NoneType)))
        case inspect.StructType():
            return {field.encode_name: _sample(field.type) for field in kind.fields}
        case inspect.ListType() | inspect.VarTupleType():
            return [_sample(kind.item_type)]
        case inspect.EnumType():
            return next(iter(kind.cls)).value
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 7
        case inspect.FloatType():
            return 0.5
        case inspect.StrType():
            return "told"
        case _:
            return {"any": "told"}


def _words(command: click.Command) -> list[str]:
    """A command line that gives every argument and option, except those of a client."""
    words = []
    for one in command.params:
        if isinstance(one, click.Argument):
            words.append(f"given {one.name}")
        elif one.name not in (*client_command.PLACE, "connection", "as_json"):
            words += [one.opts[0], _text_of(one.type)]
    return words


def _text_of(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return str(kind.choices[0])
    return "7" if isinstance(kind, click.types.IntParamType) else "given"


def _run(
    command: click.Command, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, list[Request]]:
    driver = _Recorder()

    @contextmanager
    def opened(**place: Any) -> Iterator[Client]:
        yield Client.over(driver)

    monkeypatch.setattr(client_command, "open_client", opened)
    ran = CliRunner().invoke(command, words, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return ran.output, driver.requests


def test_there_are_plain_commands() -> None:
    assert len(COMMANDS) > 20


@each
def test_the_operation_and_the_method_exist(command: PlainCommand) -> None:
    row = command.row
    operation = OPERATIONS_BY_NAME[row.operation]
    assert set(operation.path_parameters) <= set(row.arguments), "a part of the path is missing"
    method = attrgetter(row.method)(Client.over(_Recorder()))
    options = {
        one.name: None
        for one in command.params
        if isinstance(one, click.Option)
        and one.name not in (*client_command.PLACE, "connection", "as_json")
    }
    signature(method).bind(*row.arguments, **options)


@each
def test_every_field_is_sent_and_every_column_is_shown(
    command: PlainCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = command.row
    words = _words(command)
    shown, requests = _run(command, words, monkeypatch)
    asked = requests[-1]
    assert asked.operation == row.operation
    sent = {**asked.path, **asked.query, **(asked.body or {}), "fence": asked.fencing_token}
    for field in row.arguments:
        assert sent[field] == f"given {field}"
    whole = json.dumps(sent)
    assert all(word in whole for word in words if not word.startswith("-")), whole
    assert bool(shown) == (row.show is not None or bool(row.done))
    if row.show is not None:
        assert "told" in shown
    if any(one.name == "as_json" for one in command.params):
        printed, _ = _run(command, [*words, "--json"], monkeypatch)
        assert json.loads(printed)


@each
def test_the_help_names_every_argument(command: PlainCommand) -> None:
    assert command.help is not None
    for metavar in command.row.arguments.values():
        assert metavar in command.help
