"""`memorywall config`."""

from __future__ import annotations

from typing import Any

import click

from memorywall.cli.options import print_result
from memorywall.cli.output import print_table
from memorywall.cli.setting_options import configured
from memorywall.configuration.reader import Configuration
from memorywall.configuration.values import shown
from memorywall.settings import SETTINGS


def _print(found: dict[str, Any]) -> None:
    print_table(
        ["setting", "value", "from"],
        ([one["name"], _cell(one["value"], one["unit"]), one["origin"]]
         for one in found["settings"]),
        widest=None,
    )  # fmt: skip


@click.group()
def command() -> None:
    """Show the settings and where each value comes from."""


@command.command()
@configured
@print_result(_print)
def show(configuration: Configuration) -> dict[str, Any]:
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
    file = configuration.file
    return {"file": None if file is None else str(file), "settings": rows}


def _cell(value: object, unit: object) -> str:
    if value is None:
        return "none"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, bool):
        text = text.lower()
    elif isinstance(value, list):
        text = ", ".join(map(str, value)) or "none"
    return f"{text} {unit}" if unit else text
