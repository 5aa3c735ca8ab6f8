"""Options that follow from the fields of an operation in the operations table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec import inspect

Command = TypeVar("Command", bound=Callable[..., Any])

_NAMES = {"agent_id": ("--of",), "subject": ("--subject", "--user")}
"""The names of the option of a field that are not its own: `--agent` is the client's."""
_TYPES: dict[type[inspect.Type], Any] = {inspect.IntType: int, inspect.BoolType: bool}


def table_options(struct: type, *names: str) -> Callable[[Command], Command]:
    """Adds an option for each named field of a query or body, in this order.

    The option has the name of the field without `_id`, the field's description as help, the field's
    words as choices, and is a flag for a truth value. The command gets it by the name of the field;
    None if it is not given.
    Raises KeyError for a field that the struct does not have.
    """
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)  # noqa: S101 - queries and bodies are structs
    fields = {field.name: field for field in described.fields}

    def add(command: Command) -> Command:
        for name in reversed(names):
            field = fields[name]
            words = _words(field.type)
            kind = next((_TYPES[one] for one in _TYPES if _is(field.type, one)), str)
            flag: dict[str, Any] = {"is_flag": True, "default": None} if kind is bool else {}
            command = click.option(
                *_NAMES.get(name, ("--" + name.removesuffix("_id").replace("_", "-"),)),
                name,
                type=click.Choice(words) if words else kind,
                required=field.required,
                help=_description(field.type),
                **flag,
            )(command)
        return command

    return add


def _description(kind: inspect.Type) -> str | None:
    given = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    return None if given is None else given.get("description")


def _is(kind: inspect.Type, wanted: type[inspect.Type]) -> bool:
    """Whether a field has a type, among others or with limits."""
    if isinstance(kind, inspect.Metadata):
        return _is(kind.type, wanted)
    if isinstance(kind, inspect.UnionType):
        return any(_is(one, wanted) for one in kind.types)
    return isinstance(kind, wanted)


def _words(kind: inspect.Type) -> tuple[str, ...]:
    """The words that a field is limited to; empty for free text."""
    if isinstance(kind, inspect.Metadata):
        return _words(kind.type)
    if isinstance(kind, inspect.UnionType):
        return next((words for one in kind.types if (words := _words(one))), ())
    if isinstance(kind, inspect.EnumType):
        return tuple(map(str, kind.cls))
    return tuple(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else ()
