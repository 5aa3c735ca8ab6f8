"""`memorywall restore`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.assembly import open_backup, open_target
from memorywall.cli.options import json_option, storage_options
from memorywall.cli.transfers import checking_key_of, run_copy, show
from memorywall.jobs.copy import OverwritePolicy
from memorywall.settings import Settings


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@storage_options
@click.option("--without-checksums", is_flag=True, help="Accept a backup without checksums.")
@json_option
def command(storage: Settings, without_checksums: bool, as_json: bool, file: Path) -> None:
    """Restore a backup into a new data directory or an empty PostgreSQL database.

    First compares the checksums of FILE, and restores nothing if a byte of it has changed. Sealed
    data needs the key-encryption key of the backed-up store, which FILE does not contain.
    """
    report = run_copy(
        lambda: open_backup(file, without_checksums=without_checksums),
        lambda: open_target(storage, new=True),
        OverwritePolicy.EMPTY_ONLY,
        "restore",
        checking_key_of(storage),
    )
    show(report, as_json=as_json)
