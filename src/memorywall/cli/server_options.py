"""The options of `memorywall serve` that concern HTTP: logs, limits, CORS and TLS."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from memorywall.records.errors import ConfigurationError

Command = TypeVar("Command", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False)
_ORIGIN = re.compile(r"https?://[^/?#\s*]+")
_OPTIONS = (
    click.option(
        "--access-log/--no-access-log",
        default=True,
        show_default=True,
        help="Log each request as one line of JSON.",
    ),
    click.option(
        "--principal-rate",
        type=click.FloatRange(min=0, min_open=True),
        metavar="NUMBER",
        help="Requests per second of one principal.",
    ),
    click.option(
        "--tenant-rate",
        type=click.FloatRange(min=0, min_open=True),
        metavar="NUMBER",
        help="Requests per second of one tenant.",
    ),
    click.option(
        "--rate-burst",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="Seconds' worth of requests that may come at once.",
    ),
    click.option(
        "--tenant-concurrency",
        type=click.IntRange(min=1),
        metavar="NUMBER",
        help="Requests of one tenant that run at the same time; more wait.",
    ),
    click.option(
        "--body-limit",
        type=click.IntRange(min=1),
        metavar="BYTES",
        help="The largest body of a request, other than a batch or an attachment.",
    ),
    click.option(
        "--client-timeout",
        type=click.FloatRange(min=0.1),
        metavar="SECONDS",
        help="How long a client may take to send a request, or to read of a reply.",
    ),
    click.option(
        "--shutdown-timeout",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="How long a stopping server waits for running requests.",
    ),
    click.option(
        "--cors-origin",
        multiple=True,
        metavar="ORIGIN",
        help="An origin whose pages may call the server, such as https://example.org.",
    ),
    click.option("--tls-cert", type=_FILE, help="The certificate chain, as PEM."),
    click.option("--tls-key", type=_FILE, help="The private key of the certificate."),
)


def server_options(command: Command) -> Command:
    """Adds the options, of which `server_settings` makes settings."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def server_settings(cors_origin: tuple[str, ...], **options: Any) -> dict[str, Any]:
    """The settings for these options; None for an option that is not given.

    Raises ConfigurationError.
    """
    for origin in cors_origin:
        if not _ORIGIN.fullmatch(origin):
            raise ConfigurationError(
                "--cors-origin must be a scheme and a host, such as https://example.org"
            )
    return {**options, "cors_origins": cors_origin}
