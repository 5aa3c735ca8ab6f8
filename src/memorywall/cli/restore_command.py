"""`memorywall restore`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.assembly import open_backup, open_target
from memorywall.cli.options import json_option, place_options
from memorywall.cli.transfers import carry, checking_key_of, show
from memorywall.pipelines.copy import Over
from memorywall.settings import Settings


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@place_options
@json_option
def command(place: Settings, as_json: bool, file: Path) -> None:
    """Put what a backup holds into a new data directory, or an empty PostgreSQL database.

    The key-encryption key the backup was made with is needed to read it; it is not in FILE.
    """
    report = carry(
        lambda: open_backup(file),
        lambda: open_target(place, new=True),
        Over.NOTHING,
        "restore",
        checking_key_of(place),
    )
    show(report, as_json=as_json)
