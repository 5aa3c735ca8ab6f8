"""The work of `memorywall backup verify`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from tqdm import tqdm

from memorywall.assembly import open_backup_inspection, open_vault, settings_for
from memorywall.cli.output import count_of, print_json
from memorywall.cli.verify_command import count_rows, print_report, public_report
from memorywall.jobs.copy import digest_tables
from memorywall.jobs.verify import VerifyReport, verify
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.settings import DEFAULT_DATA, KEY_ENVIRONMENT
from memorywall.storage.backup_file import BackupManifest
from memorywall.storage.transfer import TableDigest


@dataclass(frozen=True, slots=True)
class BackupVerification:
    """The result of `memorywall backup verify`.

    manifest: None for a backup without checksums
    report: the comparison of the log with the rows, with the problems of the tables
    """

    manifest: BackupManifest | None
    report: VerifyReport


def verify_file(file: Path, data: Path | None, *, without_checksums: bool) -> BackupVerification:
    """Checks the bytes of a backup, then its tables, then its rows and its log.

    data: the directory with the key-encryption key; None if the environment has the key

    Raises BackupDamagedError if the bytes are not those that were written, ConfigurationError.
    """
    inspection = open_backup_inspection(file, without_checksums=without_checksums)
    try:
        cipher = _open_vault(data)
        if cipher is None:
            click.echo(
                f"the key-encryption key is missing (--data or {KEY_ENVIRONMENT}):"
                " digests of contents and rows are not checked",
                err=True,
            )
        with tqdm(total=count_rows(inspection), unit="rows", leave=False, disable=None) as bar:
            report = verify(inspection, bar.update, cipher)
        manifest = inspection.manifest
        if manifest is not None and not inspection.is_migrated:
            found = asyncio.run(digest_tables(inspection.rows))
            report.problems.extend(_compare(manifest.tables, found))
    finally:
        inspection.close()
    return BackupVerification(manifest, report)


def print_verification(verification: BackupVerification, *, as_json: bool) -> None:
    """Prints the result."""
    manifest, report = verification.manifest, verification.report
    if as_json:
        print_json(
            {
                "checksums": None if manifest is None else len(manifest.parts) + 1,
                "tables": None if manifest is None else len(manifest.tables),
                **public_report(report),
            }
        )
        return
    print_report(report)
    if manifest is None:
        click.echo("the backup has no checksums")
    else:
        click.echo(
            f"the checksums of {count_of(len(manifest.parts), 'part')}, of"
            f" {count_of(len(manifest.tables), 'table')} and of the whole file were compared"
        )


def _open_vault(data: Path | None) -> EnvelopeCipher | None:
    settings = settings_for(Path(DEFAULT_DATA) if data is None else data)
    if data is None and settings.encryption_key is None:
        # The default directory may be that of another store.
        return None
    return open_vault(settings)


def _compare(expected: list[TableDigest], found: list[TableDigest]) -> Iterator[str]:
    """Yields the tables whose rows are not those that the manifest names."""
    for one in sorted({*expected} ^ {*found}):
        yield f"{one.tenant}: the rows of {one.table} are not those of the manifest"
