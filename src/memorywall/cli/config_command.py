"""`memorywall config`."""

from __future__ import annotations

import click

from memorywall.cli.options import json_option
from memorywall.cli.output import print_json, print_table
from memorywall.cli.setting_options import configured
from memorywall.configuration.reader import Configuration
from memorywall.configuration.values import shown
from memorywall.settings import SETTINGS


@click.group()
def command() -> None:
    """Show the settings and where each value comes from."""


@command.command()
@configured
@json_option
def show(configuration: Configuration, as_json: bool) -> None:
    """Show each setting, its value and its origin; secrets only as set or not set.

    Takes the options of memorywall serve, to show which settings a server would have.
    """
    rows = [
        {
            "name": one.name,
            "value": shown(one, configuration.values[one.name]),
            "unit": one.unit or None,
            "origin": configuration.origins[one.name],
        }
        for one in SETTINGS
    ]
    if as_json:
        print_json({"file": _text(configuration.file), "settings": rows})
        return
    print_table(
        ["setting", "value", "from"],
        ([row["name"], _cell(row["value"], row["unit"]), row["origin"]] for row in rows),
        widest=None,
    )


def _cell(value: object, unit: object) -> str:
    if value is None:
        return "none"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, bool):
        text = text.lower()
    elif isinstance(value, list):
        text = ", ".join(map(str, value)) or "none"
    return f"{text} {unit}" if unit else text


def _text(path: object) -> str | None:
    return None if path is None else str(path)
