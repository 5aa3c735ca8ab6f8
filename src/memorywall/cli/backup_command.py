"""`memorywall backup`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from memorywall.assembly import create_backup, open_source
from memorywall.cli.backup_verification import print_verification, verify_file
from memorywall.cli.options import json_option, require_database, storage_options
from memorywall.cli.output import print_json, print_table
from memorywall.cli.passphrase import ask_passphrase, passphrase_option
from memorywall.cli.setting_options import DATA, ledger_option
from memorywall.cli.transfers import run_copy, show
from memorywall.jobs.copy import OverwritePolicy, check_key
from memorywall.records.backup_origin import BackupOrigin
from memorywall.records.clock import SystemClock, format_instant
from memorywall.service.encryption.key_file import read_keys
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.service.encryption.sealed_keys import seal_keys
from memorywall.settings import Settings
from memorywall.storage.backup_file import ChecksumState, ListedBackup, list_backups
from memorywall.storage.suppression_ledger import ensure_ledger

_FILE = click.Path(path_type=Path, dir_okay=False)
_DIRECTORY = click.Path(path_type=Path, file_okay=False, exists=True)


class _CreateByDefault(click.Group):
    """Runs `create` if the first argument is the name of no subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["create", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_CreateByDefault)
def command() -> None:
    """Write, verify and list backups; `memorywall backup FILE` writes one."""


@command.command()
@storage_options
@ledger_option
@click.option("--with-keys", is_flag=True, help="Add the keys, sealed by a passphrase.")
@passphrase_option
@json_option
@click.argument("file", type=_FILE)
def create(
    storage: Settings,
    ledger: Path | None,
    with_keys: bool,
    passphrase_file: Path | None,
    as_json: bool,
    file: Path,
) -> None:
    """Write the whole state of a store at this moment to a new FILE.

    Works beside a running server. Without --with-keys, FILE does not contain the key-encryption
    key: keep a copy of it. FILE names the position in the suppression ledger, and never contains
    the ledger.
    """
    if passphrase_file is not None and not with_keys:
        raise click.UsageError("--passphrase-file needs --with-keys")
    require_database(storage)
    directory = storage.ledger_directory if ledger is None else ledger
    sealed, check = None, None
    if with_keys:
        keys = read_keys(storage)
        sealed = seal_keys(keys, ask_passphrase(passphrase_file, is_new=True))
        check = partial(check_key, keys=MasterKeys(keys))
    began_at = format_instant(SystemClock().now())
    position = None if directory is None else ensure_ledger(directory)
    report = run_copy(
        lambda: open_source(storage),
        lambda: create_backup(file, BackupOrigin(position, began_at, sealed)),
        OverwritePolicy.EMPTY_ONLY,
        "backup",
        check,
    )
    report.source_changed = False
    show(report, as_json=as_json)
    click.echo(_needed_with(storage, directory, with_keys=with_keys), err=True)


def _needed_with(storage: Settings, ledger: Path | None, *, with_keys: bool) -> str:
    """Says what a restore needs besides the backup, which does not contain it."""
    key = "the key of MEMORYWALL_KEY"
    if with_keys:
        key = "the passphrase"
    elif storage.encryption_key is None:
        key = f"the key-encryption key {storage.key_file}"
    newest = "the newest suppression ledger" + (
        " if erasures are recorded in one (--ledger)" if ledger is None else f" {ledger}"
    )
    return f"keep what a restore needs besides it: {key}, and {newest}"


@command.command()
@click.argument("file", type=_FILE)
@click.option("--data", type=DATA, help="The data directory with the key-encryption key.")
@click.option("--without-checksums", is_flag=True, help="Accept a backup without checksums.")
@json_option
def verify(file: Path, data: Path | None, without_checksums: bool, as_json: bool) -> None:
    """Compare every checksum of a backup, and replay its event log.

    Reads FILE only and changes nothing. The digests of contents and rows are checked if the
    key-encryption key is available. Exit code 1 when something does not agree.
    """
    verification = verify_file(file, data, without_checksums=without_checksums)
    print_verification(verification, as_json=as_json)
    if verification.report.problems:
        sys.exit(1)


@command.command("list")
@click.argument("directory", type=_DIRECTORY)
@click.option("--quick", is_flag=True, help="Do not read the files to compare their checksums.")
@json_option
def list_(directory: Path, quick: bool, as_json: bool) -> None:
    """List the backups in DIRECTORY, and whether their checksums match."""
    backups = list_backups(directory, check=not quick)
    if as_json:
        print_json([_public(one) for one in backups])
    else:
        headers = ("file", "time", "size", "tenants", "entries", "schema", "keys", "checksums")
        print_table(headers, map(_cells, backups), widest=None)
    if any(one.state is ChecksumState.DAMAGED for one in backups):
        sys.exit(1)


def _public(backup: ListedBackup) -> dict[str, object]:
    manifest = backup.manifest
    return {
        "file": backup.name,
        "time": None if manifest is None else manifest.created_at,
        "size": backup.size,
        "tenants": None if manifest is None else manifest.tenants,
        "entries": None if manifest is None else manifest.entries,
        "schema": backup.schema,
        "keys": manifest is not None and manifest.keys is not None,
        "checksums": backup.state,
    }


def _cells(backup: ListedBackup) -> list[object]:
    return [f"{one:,}" if isinstance(one, int) else one for one in _public(backup).values()]
