"""Functions that `copy`, `backup` and `restore` share."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
from tqdm import tqdm

from memorywall.cli.output import print_json, print_table
from memorywall.cli.signals import defer_sigterm, handle_sigterm
from memorywall.jobs.copy import (
    CopyReport,
    OverwritePolicy,
    check_key,
    copy,
    count_rows,
    holds_sealed,
)
from memorywall.service.encryption.key_file import load_keys
from memorywall.settings import KEY_ENVIRONMENT, Settings
from memorywall.storage.transfer import CopySource, CopyTarget

_SAME_KEY = (
    "sealed data stays sealed: both sides need the same key-encryption key, which is not copied"
)
_DIGITS_SHOWN = 16
Source = TypeVar("Source", bound=CopySource)


def run_copy(
    open_source: Callable[[], Awaitable[Source]],
    open_target: Callable[[], Awaitable[CopyTarget]],
    overwrite: OverwritePolicy,
    label: str,
    check_key: Callable[[Source], Awaitable[str | None]] | None = None,
) -> CopyReport:
    """Copies one side to the other, with a progress bar.

    check_key: checks the source before anything is copied; returns a message to print afterwards
    """

    async def fill(source: Source, target: CopyTarget) -> CopyReport:
        total = await count_rows(source)
        with tqdm(total=total, unit="rows", desc=label, leave=False, disable=None) as bar:
            return await copy(source, target, overwrite, bar.update)

    async def run() -> tuple[CopyReport, str | None]:
        source = await open_source()
        try:
            said = None if check_key is None else await check_key(source)
            with defer_sigterm() as release:
                # A target may be a file that must not be left behind.
                target = await open_target()
                try:
                    release()
                    return await fill(source, target), said
                finally:
                    await target.close()
        finally:
            await source.close()

    with handle_sigterm():
        report, said = asyncio.run(run())
    if said is not None:
        click.echo(f"memorywall: {said}", err=True)
    return report


def checking_key_of(storage: Settings) -> Callable[[CopySource], Awaitable[str | None]]:
    """Checks that the key-encryption key of the target opens the data keys of the source.

    Raises ConfigurationError if it does not; returns a message if the key is not available.
    """

    async def check(source: CopySource) -> str | None:
        if not await holds_sealed(source):
            return None
        if storage.encryption_key is None and storage.database_url is not None:
            # The directories of the servers on a database are unknown here.
            return (
                f"{_SAME_KEY}; start servers with the --data directory or {KEY_ENVIRONMENT} of it"
            )
        if storage.encryption_key is None and not storage.key_file.exists():
            return (
                f"{_SAME_KEY}: put it at {storage.key_file}, mode 0600, or set {KEY_ENVIRONMENT},"
                " before a server is started there"
            )
        await check_key(source, load_keys(storage, may_create=False))
        return None

    return check


def show(report: CopyReport, *, as_json: bool, forgotten: dict[str, int] | None = None) -> None:
    """Prints the comparison. Exits with code 1 if the sides differ.

    forgotten: the numbers of names whose erasure a restore has repeated
    """
    if as_json:
        print_json(
            {
                "agree": report.agree,
                "written": report.written,
                "removed": report.removed,
                "source_changed": report.source_changed,
                **({} if forgotten is None else {"forgotten": forgotten}),
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
        if forgotten is not None and report.agree:
            counted = ", ".join(f"{number:,} {name}" for name, number in forgotten.items())
            click.echo(f"erased again what was forgotten since the backup: {counted}")
    if not report.agree:
        sys.exit(1)


def _show_table(report: CopyReport) -> None:
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
