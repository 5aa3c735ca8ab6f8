"""What `copy`, `backup` and `restore` share."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

import click
from tqdm import tqdm

from memorywall.assembly import load_key
from memorywall.cli.output import print_json, print_table
from memorywall.cli.stopping import heeding_sigterm
from memorywall.pipelines.copy import Over, Report, check_key, copy, count_rows, holds_sealed
from memorywall.settings import KEY_ENVIRONMENT, Settings
from memorywall.storage.transfer import Origin, Target

_SAME_KEY = (
    "what is sealed stays sealed: both sides need the same key-encryption key, which is not copied"
)
_DIGITS_SHOWN = 16


def carry(
    open_source: Callable[[], Awaitable[Origin]],
    open_target: Callable[[], Awaitable[Target]],
    over: Over,
    label: str,
    check_key: Callable[[Origin], Awaitable[str | None]] | None = None,
) -> Report:
    """Copies one side onto the other, with a progress bar.

    check_key: looks at the source before anything is copied; what it says is told afterwards
    """

    async def run() -> tuple[Report, str | None]:
        source = await open_source()
        try:
            said = None if check_key is None else await check_key(source)
            target = await open_target()
            try:
                total = await count_rows(source)
                with tqdm(total=total, unit="rows", desc=label, leave=False, disable=None) as bar:
                    return await copy(source, target, over, bar.update), said
            finally:
                await target.close()
        finally:
            await source.close()

    with heeding_sigterm():
        report, said = asyncio.run(run())
    if said is not None:
        click.echo(f"memorywall: {said}", err=True)
    return report


def checking_key_of(place: Settings) -> Callable[[Origin], Awaitable[str | None]]:
    """Checks that a source can be read with the key-encryption key its target will have.

    Raises ConfigurationError when it cannot; says so when that key is not at hand.
    """

    async def check(source: Origin) -> str | None:
        if not await holds_sealed(source):
            return None
        if place.key is None and place.store is not None:
            # Which directory the servers on a database will have is not known here.
            return (
                f"{_SAME_KEY}; start servers with the --data directory or {KEY_ENVIRONMENT} of it"
            )
        if place.key is None and not place.key_file.exists():
            return (
                f"{_SAME_KEY}: put it at {place.key_file}, mode 0600, or set {KEY_ENVIRONMENT},"
                " before a server is started there"
            )
        await check_key(source, load_key(place, may_create=False))
        return None

    return check


def show(report: Report, *, as_json: bool) -> None:
    """Prints what was compared. Ends the program with exit code 1 when it does not agree."""
    if as_json:
        print_json(
            {
                "agree": report.agree,
                "written": report.written,
                "removed": report.removed,
                "source_changed": report.source_changed,
                "tables": [
                    {
                        "tenant": one.tenant,
                        "table": one.table,
                        "rows": one.rows,
                        "digest": one.digest,
                        "target_rows": one.target_rows,
                        "target_digest": one.target_digest,
                    }
                    for one in report.compared
                ],
            }
        )
    else:
        _show_table(report)
    if not report.agree:
        sys.exit(1)


def _show_table(report: Report) -> None:
    compared = sorted(
        (one for one in report.compared if one.rows or one.target_rows), key=lambda one: one.tenant
    )
    print_table(
        ["tenant", "table", "rows", "digest", "target"],
        [
            [
                one.tenant,
                one.table,
                f"{one.rows:,}",
                one.digest[:_DIGITS_SHOWN],
                "agrees" if one.agree else f"{one.target_rows:,} rows, does not agree",
            ]
            for one in compared
        ],
    )
    verdict = "agree" if report.agree else "do not agree: run it again"
    rows = sum(one.rows for one in compared)
    click.echo(
        f"{rows:,} rows {verdict} ({report.written:,} were written, {report.removed:,} removed)"
    )
    if report.source_changed:
        click.echo("the source changed while copying; run again after stopping it")
