"""Options that follow from the fields of an operation in the operations table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import click
import msgspec
from msgspec import inspect

from memorywall.records.argument_names import EARLIER
from memorywall.wire.field_texts import FIELD_TEXTS

Command = TypeVar("Command", bound=Callable[..., Any])

_NAMES = {"agent_id": "--of", "client_id": "--client-id", "tool_call_id": "--tool-call-id"}
"""The options of fields whose option is not the name without `_id`: `--agent` is the client's."""

_OF_JSON = (inspect.DictType, inspect.ListType, inspect.StructType, inspect.VarTupleType)


class RenamedOption(click.Option):
    """An option of a person, which is also found by its earlier name. Help does not show that."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Adds the option by both names."""
        shown = self.opts
        self.opts = [*shown, "--subject"]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


renamed_option = partial(click.option, cls=RenamedOption)


def table_options(
    struct: type, *names: str, is_optional: bool = False
) -> Callable[[Command], Command]:
    """Adds an option for each named field of a query or body, in this order.

    The option has the name of the field without `_id`, the field's description as help, and the
    field's words and limits. Objects and lists are JSON texts, lists of texts are given several
    times. The command gets a field by its name, None without the option.

    is_optional: whether options of required fields may be missing too; default: false

    Raises KeyError for a field that the struct does not have.
    """
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)  # noqa: S101 - queries and bodies are structs
    fields = {field.name: field for field in described.fields}

    def add(command: Command) -> Command:
        for name in reversed(names):
            field = fields[name]
            is_person = any(name in names for names in EARLIER.values())
            command = (renamed_option if is_person else click.option)(
                _NAMES.get(name, "--" + name.removesuffix("_id").replace("_", "-")),
                name,
                required=field.required and not is_optional,
                help=_help(field),
                **_form(field.type),
            )(command)
        return command

    return add


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given, without those that are None or empty."""
    return {name: value for name, value in options.items() if value not in (None, ())}


def _help(field: inspect.Field) -> str | None:
    """The description of a field, with its default if that is a number."""
    text = _description(field.type) or FIELD_TEXTS.get(field.encode_name)
    is_number = isinstance(field.default, int | float) and not isinstance(field.default, bool)
    if text is None or not is_number or "default" in text:
        return text
    return f"{text.removesuffix('.')}; default: {field.default:g}."


def _description(kind: inspect.Type) -> str | None:
    given = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    return None if given is None else given.get("description")


def _form(kind: inspect.Type) -> dict[str, Any]:
    """The form of a value of a field, as arguments of `click.option`."""
    kind = _without_null(kind)
    match kind:
        case inspect.BoolType():
            return {"is_flag": True, "default": None}
        case inspect.IntType():
            return {"type": click.IntRange(kind.ge, kind.le)}
        case inspect.FloatType():
            return {"type": click.FloatRange(kind.ge, kind.le)}
        case inspect.LiteralType():
            return {"type": click.Choice([str(word) for word in kind.values])}
        case inspect.EnumType():
            return {"type": click.Choice([str(word) for word in kind.cls])}
        case inspect.VarTupleType(item_type=inspect.StrType()):
            return {"multiple": True}
    is_json = isinstance(kind, _OF_JSON)
    return {"type": _decode, "metavar": "JSON"} if is_json else {"type": str}


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise click.BadParameter("this is not JSON") from None


def _without_null(kind: inspect.Type) -> inspect.Type:
    """The type of a field that is no null; of several the first with words, or else the first."""
    if isinstance(kind, inspect.Metadata):
        return _without_null(kind.type)
    if isinstance(kind, inspect.UnionType):
        types = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        words = (one for one in types if isinstance(one, inspect.LiteralType))
        return _without_null(next(words, types[0]))
    return kind
