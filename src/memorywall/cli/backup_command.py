"""`memorywall backup`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.assembly import create_backup, open_source
from memorywall.cli.options import json_option, require_database, storage_options
from memorywall.cli.transfers import run_copy, show
from memorywall.jobs.copy import OverwritePolicy
from memorywall.settings import Settings


@click.command()
@storage_options
@json_option
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def command(storage: Settings, as_json: bool, file: Path) -> None:
    """Write the whole state of a store at this moment to a new FILE.

    Works beside a running server. FILE does not contain the key-encryption key: keep a copy of it.
    """
    require_database(storage)
    report = run_copy(
        lambda: open_source(storage),
        lambda: create_backup(file),
        OverwritePolicy.EMPTY_ONLY,
        "backup",
    )
    report.source_changed = False
    show(report, as_json=as_json)
