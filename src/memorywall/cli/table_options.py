"""Options that follow from the fields of an operation in the operations table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec import inspect

Command = TypeVar("Command", bound=Callable[..., Any])


def table_options(struct: type, *names: str) -> Callable[[Command], Command]:
    """Adds an option for each named field of a query or body, in this order.

    The option has the name of the field without `_id`, the field's description as help, and the
    field's words as choices. The command gets it by the name of the field.
    Raises KeyError for a field that the struct does not have.
    """
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)  # noqa: S101 - queries and bodies are structs
    fields = {field.name: field.type for field in described.fields}

    def add(command: Command) -> Command:
        for name in reversed(names):
            option = "--" + name.removesuffix("_id").replace("_", "-")
            words = _words(fields[name])
            command = click.option(
                option,
                name,
                type=click.Choice(words) if words else str,
                help=_description(fields[name]),
            )(command)
        return command

    return add


def _description(kind: inspect.Type) -> str | None:
    given = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    return None if given is None else given.get("description")


def _words(kind: inspect.Type) -> tuple[str, ...]:
    """The words that a field is limited to; empty for free text."""
    if isinstance(kind, inspect.Metadata):
        return _words(kind.type)
    if isinstance(kind, inspect.UnionType):
        return next((words for one in kind.types if (words := _words(one))), ())
    return tuple(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else ()
