"""`memorywall verify`."""

from __future__ import annotations

import sys

import click
import msgspec
from tqdm import tqdm

from memorywall.assembly import open_inspection, open_vault
from memorywall.cli.options import json_option, storage_options
from memorywall.cli.output import print_json
from memorywall.jobs.verify import VerifyReport, verify
from memorywall.records.feature_errors import StoreDamagedError
from memorywall.settings import Settings
from memorywall.storage.consistency import ConsistencyReader

_MOST_SHOWN = 50


@click.command()
@storage_options
@json_option
def command(storage: Settings, as_json: bool) -> None:
    """Check the database, replay the event log and compare it with the store.

    Compares every entry, earlier version and attachment with its digest, and every index with the
    entries. Works beside a running server. Exit code 1 when something does not agree.
    """
    inspection = open_inspection(storage)
    cipher = open_vault(storage)
    if cipher is None:
        click.echo("the key-encryption key is missing: digests are not checked", err=True)
    try:
        with tqdm(total=count_rows(inspection), unit="rows", leave=False, disable=None) as bar:
            report = verify(inspection, bar.update, cipher)
    finally:
        inspection.close()
    if as_json:
        print_json(public_report(report))
    else:
        print_report(report)
    if report.problems:
        sys.exit(1)


def count_rows(inspection: ConsistencyReader) -> int | None:
    """Returns the number of entries and events; None if a damaged database does not tell it."""
    try:
        return sum(inspection.sizes())
    except StoreDamagedError:
        return None


def public_report(report: VerifyReport) -> dict[str, object]:
    """Returns the members of a report as JSON shows it."""
    return {
        "entries": report.entries,
        "events": report.events,
        "problems": report.problems,
        "segments": [msgspec.to_builtins(one) for one in report.segments],
    }


def print_report(report: VerifyReport) -> None:
    """Prints the first problems and the verdict."""
    for problem in report.problems[:_MOST_SHOWN]:
        click.echo(problem)
    if len(report.problems) > _MOST_SHOWN:
        click.echo(f"... and {len(report.problems) - _MOST_SHOWN} more")
    verdict = "do not agree" if report.problems else "agree"
    click.echo(f"{report.entries:,} entries and {report.events:,} events {verdict}")
    for one in report.segments:
        click.echo(
            f"{one.tenant}: a restore begins a segment of the log at event {one.first:,},"
            f" after event {one.first - 1:,} of the backup"
        )
    if report.erased:
        click.echo(f"the content of {report.erased:,} events has been erased")
