"""`memorywall doctor`."""

from __future__ import annotations

import asyncio
import sys

import click

from memorywall.cli.options import json_option
from memorywall.cli.output import print_json
from memorywall.cli.setting_options import located
from memorywall.configuration.reader import Configuration
from memorywall.diagnosis.doctor import examine
from memorywall.diagnosis.finding import Finding, Level
from memorywall.records.clock import SystemClock


@click.command()
@located
@click.option("--url", envvar="MEMORYWALL_URL", help="The server; by default that of the settings.")
@json_option
def command(configuration: Configuration, url: str | None, as_json: bool) -> None:
    """Check an installation, one line for each check, and say what to do about problems.

    Changes nothing and works beside a running server. Reads the database file once. Exit code 1 if
    there is a problem; a warning is none.
    """

    async def run() -> list[Finding]:
        found = []
        async for one in examine(configuration, SystemClock(), url):
            found.append(one)
            if not as_json:
                click.echo(_line(one))
        return found

    findings = asyncio.run(run())
    problems = [one for one in findings if one.level is Level.PROBLEM]
    if as_json:
        print_json({"healthy": not problems, "findings": findings})
    if problems:
        sys.exit(1)


def _line(finding: Finding) -> str:
    advice = f"; {finding.advice}" if finding.advice else ""
    return f"{finding.level:<8} {finding.check:<11} {finding.text}{advice}"
