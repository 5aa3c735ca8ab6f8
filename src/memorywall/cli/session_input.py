"""Input of the commands for sessions: metadata, and turns from the standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from memorywall.records.errors import ValidationError

metadata_option = click.option(
    "--metadata", multiple=True, metavar="NAME=VALUE", help="Several times for several values."
)


def metadata_of(given: tuple[str, ...]) -> dict[str, Any] | None:
    """Returns metadata, None without any; a value that is a number in JSON is a number. Raises
    ValidationError."""
    if not given:
        return None
    found: dict[str, Any] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals:
            raise ValidationError("--metadata must be NAME=VALUE, such as channel=mail")
        try:
            found[name] = msgspec.json.decode(text, type=float | int)
        except msgspec.MsgspecError:
            found[name] = text
    return found


def turns_of_input() -> Iterator[dict[str, Any]]:
    """Yields the JSON objects on the standard input, one a line. Raises ValidationError."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            try:
                yield msgspec.json.decode(line, type=dict[str, Any])
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                raise ValidationError(f"line {number} must be a JSON object") from None
