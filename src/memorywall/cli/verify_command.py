"""`memorywall verify`."""

from __future__ import annotations

import sys

import click
from tqdm import tqdm

from memorywall.assembly import open_inspection
from memorywall.cli.options import json_option, place_options
from memorywall.cli.output import print_json
from memorywall.pipelines.verify import verify
from memorywall.settings import Settings

_MOST_SHOWN = 50


@click.command()
@place_options
@json_option
def command(place: Settings, as_json: bool) -> None:
    """Replay the event log and compare it with what is stored, and every index with the entries.

    Works beside a running server. Exit code 1 when something does not agree.
    """
    inspection = open_inspection(place)
    try:
        with tqdm(total=sum(inspection.sizes()), unit="rows", leave=False, disable=None) as bar:
            report = verify(inspection, bar.update)
    finally:
        inspection.close()
    if as_json:
        print_json(
            {"entries": report.entries, "events": report.events, "problems": report.problems}
        )
    else:
        for problem in report.problems[:_MOST_SHOWN]:
            click.echo(problem)
        if len(report.problems) > _MOST_SHOWN:
            click.echo(f"... and {len(report.problems) - _MOST_SHOWN} more")
        verdict = "do not agree" if report.problems else "agree"
        click.echo(f"{report.entries:,} entries and {report.events:,} events {verdict}")
    if report.problems:
        sys.exit(1)
