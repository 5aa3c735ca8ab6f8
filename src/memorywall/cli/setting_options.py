"""Options that follow from the table of settings, in a module that imports no client."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from memorywall.configuration.reader import Configuration, read_configuration
from memorywall.configuration.values import checked_value, shown
from memorywall.settings import LEDGER_ENVIRONMENT, SETTINGS, Setting

Command = TypeVar("Command", bound=Callable[..., Any])


class _DataDirectory(click.Path):
    """The type of `--data`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if Path(value).is_file():
            self.fail(
                "this is a file; give the directory that holds the database, which"
                " `memorywall init --data DIRECTORY` makes",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


DATA = _DataDirectory(path_type=Path, file_okay=False)
_WITH_FLAG = [one.name for one in SETTINGS if one.flags]
_MEGABYTE = 1024 * 1024

_config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The settings file; by default memorywall.toml in the data directory.",
)
_recall_memory_option = click.option(
    "--recall-memory",
    type=click.IntRange(min=1),
    metavar="MEGABYTES",
    help="The same as --index-cache-bytes, in megabytes.",
)


def configured_by(*names: str) -> Callable[[Command], Command]:
    """Adds the options of the named settings, and --config. The command gets the settings and their
    origins as `configuration`."""
    settings = [one for one in SETTINGS if one.name in names]

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def with_options(*arguments: Any, config: Path | None, **options: Any) -> Any:
            given = {one.name: options.pop(one.name) for one in settings}
            megabytes = options.pop("recall_memory", None)
            if megabytes is not None:
                given["index_cache_bytes"] = megabytes * _MEGABYTE
            return command(*arguments, configuration=_configuration_of(given, config), **options)

        made: Callable[..., Any] = _config_option(with_options)
        if "index_cache_bytes" in names:
            made = _recall_memory_option(made)
        for one in reversed(settings):
            made = _setting_option(one, with_default=len(settings) == len(_WITH_FLAG))(made)
        return cast(Command, made)

    return add


def _configuration_of(given: Mapping[str, Any], config: Path | None) -> Configuration:
    """The configuration for the values of options; an absent or empty option is not given."""
    named = {name: value for name, value in given.items() if value not in (None, "", ())}
    return read_configuration(named, file=config)


def _setting_option(setting: Setting, *, with_default: bool) -> Callable[[Command], Command]:
    """The option of a setting, which the command gets by its name; None if it is not given."""
    names = list(setting.flags)
    more: dict[str, Any] = {}
    if setting.kind is bool:
        names[0] += "/--no-" + names[0][2:]
    elif setting.kind is tuple:
        more["multiple"] = True
    elif setting.url and setting.default is None:
        more["metavar"] = "URL"
    return click.option(
        *names,
        setting.name,
        type=None if setting.kind is bool else _type(setting),
        default=None,
        callback=_callback(setting),
        help=_help(setting, with_default=with_default),
        **more,
    )


def _type(setting: Setting) -> click.ParamType[Any]:
    if setting.choices:
        return click.Choice(setting.choices)
    if setting.name == "data":
        return DATA
    if setting.kind is Path:
        return click.Path(path_type=Path, file_okay=setting.is_file, dir_okay=not setting.is_file)
    if setting.kind is int:
        return click.IntRange(_whole(setting.minimum), _whole(setting.maximum))
    if setting.kind in (float, timedelta):
        return click.FloatRange(setting.minimum, setting.maximum)
    return click.STRING


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def _callback(setting: Setting) -> Callable[..., Any] | None:
    if setting.kind is timedelta:
        return _as_duration
    if not setting.pattern:
        return None

    def checked(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> Any:
        # The message does not repeat the value.
        return checked_value(setting, list(value), f"`{setting.flags[0]}`") if value else None

    return checked


def _as_duration(
    context: click.Context, option: click.Parameter, seconds: float | None
) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _help(setting: Setting, *, with_default: bool) -> str:
    default = shown(setting, setting.default)
    words = setting.description.replace("`", "")
    if not with_default or default is None or default is False:
        return words
    number = f"{default:g}" if isinstance(default, float) else default
    return f"{words}  [default: {number}{f' {setting.unit}' if setting.unit else ''}]"


configured = configured_by(*_WITH_FLAG)
"""Adds the option of every setting that has a flag, and --config."""

ledger_option = click.option(
    "--ledger",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"The directory of the suppression ledger (or {LEDGER_ENVIRONMENT}).",
)

located = configured_by("data", "database_url")
"""Adds the options that locate a store: --data, --store and --config."""
