"""`memorywall copy`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.assembly import open_source, open_target, settings_for
from memorywall.cli.options import json_option, require_database
from memorywall.cli.transfers import checking_key_of, run_copy, show
from memorywall.jobs.copy import OverwritePolicy
from memorywall.records.errors import ConfigurationError
from memorywall.settings import DEFAULT_DATA, Settings

_URLS = ("postgresql://", "postgres://")


@click.command()
@click.option("--from", "source", metavar="SOURCE", required=True, help="What is copied.")
@click.option("--to", "target", metavar="TARGET", required=True, help="What becomes the same.")
@click.option("--replace", is_flag=True, help="Allow the loss of all data in TARGET.")
@json_option
def command(source: str, target: str, replace: bool, as_json: bool) -> None:
    """Copy one store to another; each is a data directory or a postgresql:// URL.

    Works while a server uses SOURCE. Stop the server and run the command again to copy only the
    changes. Run the command again after an interruption. TARGET must be empty or an earlier state
    of SOURCE. Exits with code 1 if the stores differ at the end.
    """
    origin, goal = _storage_settings(source), _storage_settings(target)
    if (origin.database_url, origin.sqlite_path.resolve()) == (
        goal.database_url,
        goal.sqlite_path.resolve(),
    ):
        raise ConfigurationError("SOURCE and TARGET are the same store")
    require_database(origin)
    report = run_copy(
        lambda: open_source(origin),
        lambda: open_target(goal),
        OverwritePolicy.REPLACE if replace else OverwritePolicy.FAST_FORWARD,
        "copy",
        checking_key_of(goal),
    )
    show(report, as_json=as_json)


def _storage_settings(text: str) -> Settings:
    """The settings for a directory or a URL."""
    if text.startswith(_URLS):
        return settings_for(Path(DEFAULT_DATA), database_url=text)
    if "://" in text:
        raise ConfigurationError("a store is a data directory or a postgresql:// URL")
    return settings_for(Path(text), database_url=None)
