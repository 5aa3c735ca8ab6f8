"""`memorywall call`: any operation by its name, with options that follow from the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec
from msgspec import inspect

from memorywall.cli.client_command import PLACE, memory_options, open_client
from memorywall.cli.output import print_json
from memorywall.wire.json_rpc import METHODS
from memorywall.wire.operation import Operation
from memorywall.wire.parameters import RESERVED, field_names

_TAKEN = (*PLACE, "help")
"""Options of every command; a field of such a name has an option that ends in `-name`."""
_TEXTS = (
    inspect.StrType,
    inspect.BytesType,
    inspect.EnumType,
    inspect.LiteralType,
    inspect.DateTimeType,
)


class OperationCommand(click.Command):
    """The command of one operation.

    Its options are the parameters of the operation by name, with `-` for `_`. A value is text where
    the table says text, and else JSON.
    """

    def __init__(self, operation: Operation) -> None:
        self.fields = {f"field_{number}": field for number, field in enumerate(_fields(operation))}
        super().__init__(
            operation.name,
            params=[
                click.Option([_option(name), field], metavar="TEXT" if is_text else "JSON")
                for field, (name, is_text) in self.fields.items()
            ],
            callback=self._run,
            help=f"{operation.summary} ({operation.method} {operation.path})",
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        own = {option for one in self.params for option in one.opts}
        usual = memory_options(click.command()(lambda: None)).params
        # A field of the operation comes before an option of every command.
        self.params.extend(one for one in usual if own.isdisjoint(one.opts))

    def _run(self, **given: Any) -> None:
        place = {name: given.pop(name) for name in PLACE}
        parameters: dict[str, Any] = {}
        for field, text in given.items():
            if text is not None:
                name, is_text = self.fields[field]
                parameters[name] = text if is_text else _decode(name, text)
        with open_client(**place) as client:
            assert self.name is not None  # noqa: S101 - it is the operation's
            print_json(client.call(self.name, **parameters))


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="",
)
@click.argument("operation", metavar="OPERATION")
@click.argument("fields", nargs=-1, type=click.UNPROCESSED, metavar="[--FIELD VALUE]...")
@click.pass_context
def command(context: click.Context, operation: str, fields: tuple[str, ...]) -> None:
    """Run any operation by its name, as docs/reference.md has it, and print what it answers.

    Each parameter of its path, query and body is an option by its name. A value is text where the
    operation takes text there, and else JSON. `memorywall call OPERATION --help` lists them.
    """
    record = METHODS.get(operation)
    if record is None:
        raise click.UsageError(f"there is no operation {operation!r} that takes and answers JSON")
    inner = OperationCommand(record)
    with inner.make_context(f"{context.command_path} {operation}", list(fields)) as made:
        inner.invoke(made)


def _fields(operation: Operation) -> Iterator[tuple[str, bool]]:
    """Every parameter of an operation, and whether its values are text."""
    for name in operation.path_parameters:
        yield name, True
    if operation.query is not None:
        for name in field_names(operation.query):
            yield name, True
    if operation.body is not None:
        described = inspect.type_info(operation.body)
        assert isinstance(described, inspect.StructType)  # noqa: S101 - every JSON body is one
        for field in described.fields:
            if field.encode_name not in operation.path_parameters:
                yield field.encode_name, _is_text(field.type)
    heeded = {
        "if_match": operation.if_match != "none",
        "if_none_match": operation.if_none_match,
        "media_type": operation.merge_patch is not None,
        "fencing_token": operation.fenced,
        # A command is run once; a client that may send twice makes a key of its own.
        "idempotency_key": False,
    }
    for name in RESERVED:
        if heeded[name]:
            yield name, True


def _is_text(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(_is_text(one) for one in kind.types)
    if isinstance(kind, inspect.Metadata):
        return _is_text(kind.type)
    return isinstance(kind, _TEXTS)


def _option(name: str) -> str:
    option = name.replace("_", "-")
    return f"--{option}-name" if option in _TAKEN else f"--{option}"


def _decode(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise click.BadParameter("this is not JSON", param_hint=_option(name)) from None
