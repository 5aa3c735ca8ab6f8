"""The options of commands that write an entry, and the value that they write."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from memorywall.cli.options import all_options, type_option
from memorywall.cli.table_options import given_options, renamed_option, table_options
from memorywall.records.entry import Origin
from memorywall.records.errors import ConfigurationError
from memorywall.wire.entries import WriteQuery

field_options = all_options(
    type_option,
    click.option("--tag", "tags", multiple=True, help="A tag; the given tags replace all tags."),
    click.option("--task", "task_id", help="The task to bind it to."),
    click.option("--intent", "intent_id", help="The intent to bind the entry to."),
    click.option("--session", "session_id", help="The session to bind the entry to."),
    click.option("--kind", help="The kind of the value; its schema is checked."),
    renamed_option("--about", "subjects", multiple=True, help="A person that the entry is about."),
    click.option(
        "--origin", type=click.Choice(get_args(Origin)), help="Where the value came from."
    ),
    click.option("--source", help="The URI of what the value was taken from."),
    click.option("--context-id", help="The context that the value answers from."),
    click.option("--ttl", help="The lifetime, such as 60s, 30m, 12h, 90d or task_lifetime."),
    click.option("--expires-at", help="An RFC 3339 instant."),
    click.option("--pinned/--not-pinned", default=None, help="Exempt from eviction or not."),
    click.option("--priority", type=click.Choice(["low", "normal", "high"])),
    click.option(
        "--sensitivity", type=click.Choice(["public", "internal", "confidential", "restricted"])
    ),
    table_options(WriteQuery, "wait_for"),
    click.option(
        "--fencing-token",
        type=int,
        envvar="MEMORYWALL_FENCING_TOKEN",
        help="The fencing token of the claim or task.",
    ),
)
"""An option for each field of an entry, its tier and its scope, and the fencing token."""


def given_fields(options: Mapping[str, Any], session_id: str | None) -> dict[str, Any]:
    """Returns the given options as arguments of the client, with the scope that they name."""
    given = given_options(options)
    named = {name: given.pop(name, None) for name in ("task_id", "intent_id")}
    scope = given_options({**named, "session_id": session_id})
    return {**given, "scope": scope} if scope else given


def read_given_value(given: dict[str, Any]) -> None:
    """Replaces the text of the argument `value` by the value in it; see `read_value`."""
    given["value"] = read_value(given["value"])


def read_metadata(given: dict[str, Any]) -> None:
    """Replaces the text of the option `metadata` by the object in it; see `read_value`."""
    if given["metadata"] is not None:
        given["metadata"] = read_value(given["metadata"], "--metadata")


def read_value(text: str, name: str = "VALUE") -> dict[str, Any]:
    """Returns the value in a text: JSON, `@` and the name of a file, or `-` for standard input.

    name: the argument or option, for the message
    Raises ConfigurationError for anything but a JSON object.
    """
    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{text[1:]} cannot be read") from error
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigurationError(
            f"{name} must be a JSON object, such as '{{\"done\": 3}}'"
        ) from error
