"""`memorywall backup`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.assembly import create_backup, open_origin
from memorywall.cli.options import json_option, place_options, require_database
from memorywall.cli.transfers import carry, show
from memorywall.pipelines.copy import Over
from memorywall.settings import Settings


@click.command()
@place_options
@json_option
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def command(place: Settings, as_json: bool, file: Path) -> None:
    """Write everything a store holds to a new FILE, as it is at this instant.

    Works beside a running server. The key-encryption key is not in FILE: keep a copy of it apart.
    """
    require_database(place)
    report = carry(lambda: open_origin(place), lambda: create_backup(file), Over.NOTHING, "backup")
    report.source_changed = False
    show(report, as_json=as_json)
