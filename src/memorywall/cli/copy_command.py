"""`memorywall copy`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.assembly import open_origin, open_target, settings_for
from memorywall.cli.options import json_option, require_database
from memorywall.cli.transfers import carry, checking_key_of, show
from memorywall.pipelines.copy import Over
from memorywall.records.errors import ConfigurationError
from memorywall.settings import DEFAULT_DATA, Settings

_URLS = ("postgresql://", "postgres://")


@click.command()
@click.option("--from", "source", metavar="SOURCE", required=True, help="What is copied.")
@click.option("--to", "target", metavar="TARGET", required=True, help="What becomes the same.")
@click.option("--replace", is_flag=True, help="Give up what TARGET holds, whatever that is.")
@json_option
def command(source: str, target: str, replace: bool, as_json: bool) -> None:
    """Make one store hold what another holds; each is a data directory or a postgresql:// URL.

    Works while SOURCE is served; stop the server and run it again, then only what changed is
    copied. Run it again as well after it was interrupted. TARGET must be empty or an earlier state
    of SOURCE. Exit code 1 when the two do not agree at the end.
    """
    origin, goal = _place_of(source), _place_of(target)
    if (origin.store, origin.database.resolve()) == (goal.store, goal.database.resolve()):
        raise ConfigurationError("SOURCE and TARGET are the same store")
    require_database(origin)
    report = carry(
        lambda: open_origin(origin),
        lambda: open_target(goal),
        Over.ANYTHING if replace else Over.EARLIER,
        "copy",
        checking_key_of(goal),
    )
    show(report, as_json=as_json)


def _place_of(text: str) -> Settings:
    """The settings of a store that is named by a directory or a URL."""
    if text.startswith(_URLS):
        return settings_for(Path(DEFAULT_DATA), store=text)
    if "://" in text:
        raise ConfigurationError("a store is a data directory or a postgresql:// URL")
    return settings_for(Path(text), store=None)
