"""`memorywall restore`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from memorywall.assembly import open_backup, open_memory, open_restore_target
from memorywall.cli.options import json_option, storage_options
from memorywall.cli.passphrase import ask_passphrase, passphrase_option
from memorywall.cli.setting_options import ledger_option
from memorywall.cli.transfers import run_copy, show
from memorywall.jobs.copy import OverwritePolicy
from memorywall.jobs.restoration import Restoration
from memorywall.settings import Settings


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@storage_options
@ledger_option
@click.option(
    "--without-ledger",
    is_flag=True,
    help="Restore people and agents that were forgotten since the backup, too.",
)
@passphrase_option
@click.option("--without-checksums", is_flag=True, help="Accept a backup without checksums.")
@json_option
def command(
    storage: Settings,
    ledger: Path | None,
    without_ledger: bool,
    passphrase_file: Path | None,
    without_checksums: bool,
    as_json: bool,
    file: Path,
) -> None:
    """Restore a backup into a new data directory or an empty PostgreSQL database.

    First compares the checksums of FILE, and restores nothing if a byte of it has changed. Then
    erases what was forgotten since the backup, as the suppression ledger of the backed-up store
    tells. Needs the key-encryption key of that store. If FILE contains the key, asks the passphrase
    and puts the key in its place. Run the command again after an interruption; no server opens the
    store before it is complete.
    """
    if ledger is not None and without_ledger:
        raise click.UsageError("give either --ledger or --without-ledger")
    ask = partial(ask_passphrase, passphrase_file, is_new=False)
    open_store = partial(open_memory, unfinished=True)
    restoration = Restoration(storage, ledger, ask, open_store, without_ledger=without_ledger)
    report = run_copy(
        lambda: open_backup(file, without_checksums=without_checksums),
        lambda: open_restore_target(storage, restoration.complete),
        OverwritePolicy.EMPTY_ONLY,
        "restore",
        restoration.prepare,
    )
    show(report, as_json=as_json, forgotten=restoration.forgotten)
    for line in restoration.notes:
        click.echo(line, err=True)
