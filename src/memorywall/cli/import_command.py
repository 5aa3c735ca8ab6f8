"""`memorywall import`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec
from tqdm import tqdm

from memorywall.cli.options import client_options, open_client
from memorywall.records.draft import Draft
from memorywall.records.errors import (
    ConfigurationError,
    EntryExistsError,
    MemorywallError,
    ValidationError,
)
from memorywall.sdk.client import Client

Numbered = tuple[int, dict[str, Any]]

_CHUNK = 100
# What the server sets by itself; an export has it, a new entry gets its own.
_SERVER_SET = frozenset(
    {"id", "agent_id", "version", "created_at", "updated_at", "created_by", "curated_by"}
) | {"provenance"}
_KNOWN = frozenset(Draft.__struct_fields__) | _SERVER_SET


@click.command("import")
@client_options
@click.option("--skip-existing", is_flag=True, help="Leave entries alone that are there already.")
@click.argument("file", type=click.File("rb"))
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    skip_existing: bool,
    file: BinaryIO,
) -> None:
    """Create entries from JSON Lines, such as `export` writes; - reads standard input.

    Entries become the importing agent's own, at version 1. A hundred at a time are written, all or
    none; at the first that cannot be, the import stops and says at which line.
    """
    written = skipped = 0
    with open_client(url, key, agent, data) as client, _progress(file) as bar:
        for chunk in _chunks(file, bar):
            made = _write(client, chunk, skip_existing)
            written += made
            skipped += len(chunk) - made
    click.echo(f"{written} entries imported, {skipped} skipped", err=True)


def _progress(file: BinaryIO) -> Any:
    try:
        size = os.fstat(file.fileno()).st_size or None
    except (OSError, AttributeError):
        size = None
    return tqdm(total=size, unit="B", unit_scale=True, desc="import", leave=False, disable=None)


def _chunks(file: BinaryIO, bar: Any) -> Iterator[list[Numbered]]:
    """The entries in pieces, each entry with its line."""
    chunk: list[Numbered] = []
    for number, line in enumerate(file, start=1):
        bar.update(len(line))
        if line.strip():
            try:
                chunk.append((number, _element(line)))
            except ValidationError as error:
                raise _stopped(number, chunk[0][0] if chunk else number, error.detail) from None
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _element(line: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValidationError("it is not a JSON object") from None
    unknown = sorted(set(fields) - _KNOWN)
    if unknown:
        raise ValidationError(f"it has the unknown field `{unknown[0][:64]}`")
    if isinstance(fields.get("ttl"), str) and fields["ttl"].startswith("duration:"):
        # The instant it came to is kept; the duration would begin anew.
        fields["ttl"] = None
    return {name: value for name, value in fields.items() if name not in _SERVER_SET}


def _write(client: Client, chunk: list[Numbered], skip_existing: bool) -> int:
    """Writes a chunk; returns how many entries were new."""
    waiting = list(chunk)
    while waiting:
        try:
            client.memory.batch([element for _, element in waiting])
            return len(waiting)
        except EntryExistsError as error:
            if not skip_existing or error.index is None:
                raise _at(chunk, waiting, error) from error
            del waiting[error.index]
        except MemorywallError as error:
            raise _at(chunk, waiting, error) from error
    return 0


def _at(
    chunk: list[Numbered], waiting: list[Numbered], error: MemorywallError
) -> ConfigurationError:
    line = waiting[error.index or 0][0]
    reason = error.detail
    if isinstance(error, EntryExistsError):
        reason = "an entry with this namespace and key exists; --skip-existing leaves it alone"
    return _stopped(line, chunk[0][0], reason)


def _stopped(line: int, first: int, reason: str) -> ConfigurationError:
    """An import ends at a line; the lines before the first of its chunk have been written."""
    written = f"the lines before line {first} are written" if first > 1 else "nothing is written"
    return ConfigurationError(f"line {line}: {reason}; {written}")
