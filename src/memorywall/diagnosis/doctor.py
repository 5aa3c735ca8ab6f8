"""Runs every check of an installation."""

from __future__ import annotations

from collections.abc import AsyncIterator

from memorywall.assembly import check_health
from memorywall.configuration.reader import Configuration
from memorywall.diagnosis import installation
from memorywall.diagnosis.finding import Finding, problem
from memorywall.diagnosis.server import check_server
from memorywall.diagnosis.store import check_contents, check_health_of
from memorywall.diagnosis.summaries import check_summaries
from memorywall.records.clock import Clock
from memorywall.records.errors import MemorywallError


async def examine(
    configuration: Configuration, clock: Clock, url: str | None
) -> AsyncIterator[Finding]:
    """Yields the finding of each check. The checks change nothing and work beside a server.

    url: the URL of the server; None for the address in the settings
    """
    settings = configuration.settings
    for findings in (
        installation.check_settings(configuration),
        installation.check_python(),
        installation.check_extras(settings),
        installation.check_directory(settings),
        installation.check_disk(settings),
        installation.check_key_file(settings),
    ):
        for one in findings:
            yield one
    yield check_summaries(settings)
    try:
        health = await check_health(settings)
    except MemorywallError as error:
        advice = "" if settings.database_url else "run `memorywall init`, or correct --data"
        yield problem("store", error.detail, advice)
        yield check_server(settings, url, is_served=False)
        return
    for one in check_health_of(health):
        yield one
    yield check_server(settings, url, is_served=health.is_served)
    if health.schema == health.newest_schema and not health.damage:
        async for one in check_contents(settings, clock):
            yield one
