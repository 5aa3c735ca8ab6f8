"""Errors of the client in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import click

from memorywall.records.argument_names import nearest_name, refuse_names
from memorywall.records.errors import EntryExistsError, MemorywallError

_FIELD = re.compile(r"`(?:[\w\[\]]+\.)*([\w-]+)`")
_NO_FIELDS = frozenset({"url", "key", "agent", "data", "as_json"})
"""Parameters that say where the memory is, and are no fields of a request."""
_EXISTS = (
    "an entry with this namespace and key exists; `memorywall put` without --if-absent replaces"
    " its value"
)


@contextmanager
def named_by_options() -> Iterator[None]:
    """Names options and arguments of the running command in place of the fields of a request."""
    try:
        yield
    except MemorywallError as error:
        if isinstance(error, EntryExistsError):
            error.detail = _EXISTS
        names = _names(click.get_current_context().command)
        # What follows may be values, which are no names.
        subject, must, rest = error.detail.partition(" must ")
        subject = _FIELD.sub(lambda found: names.get(found[1], found[0]), subject)
        error.detail = subject + must + rest
        raise


def suggest_option(error: click.NoSuchOption) -> click.UsageError:
    """Returns the error about an unknown option in the sentence of all unknown arguments."""
    command = None if error.ctx is None else error.ctx.command
    known = {
        max(one.opts, key=len).lstrip("-").replace("-", "_"): max(one.opts, key=len)
        for one in ([] if command is None else command.params)
        if isinstance(one, click.Option) and not one.hidden
    }
    nearest = nearest_name(error.option_name.lstrip("-").replace("-", "_"), known)
    meant = None if nearest is None else known[nearest]
    return click.UsageError(refuse_names("options", {error.option_name: meant}), error.ctx)


def _names(command: click.Command) -> dict[str, str]:
    """The options and arguments of a command by the names of their fields."""
    names = {"X-Agent-ID": "--agent"}
    for parameter in command.params:
        if parameter.name is None or parameter.name in _NO_FIELDS:
            continue
        if isinstance(parameter, click.Option):
            option = max(parameter.opts, key=len)
            names[option.lstrip("-").replace("-", "_")] = option
            names[parameter.name] = option
        else:
            names[parameter.name.removeprefix("entry_")] = parameter.make_metavar(
                click.get_current_context()
            ).strip("[]")
    return names
