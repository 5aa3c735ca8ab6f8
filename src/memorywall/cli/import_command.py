"""`memorywall import`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import click
import msgspec
from tqdm import tqdm

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.output import ENTRIES, count_of
from memorywall.cli.worthiness_command import tell_verdicts
from memorywall.records.draft import NewEntry
from memorywall.records.errors import (
    ConfigurationError,
    EntryExistsError,
    MemorywallError,
    ValidationError,
)
from memorywall.records.worthiness import Verdict
from memorywall.sdk.models import BatchResult

Numbered = tuple[int, dict[str, Any]]
_NAMED_BY_ID = ("subject_id", "object_id", "alias_of")
"""Fields of facts and entities with the id of an entity."""

_CHUNK = 100
# Fields that the server sets: an export contains them, and a new entry gets its own.
_SERVER_SET = frozenset(
    {"id", "agent_id", "version", "created_at", "updated_at", "created_by", "curated_by"}
) | {"kind_version", "provenance", "state", "status", "warnings", "worthiness"}
_KNOWN = frozenset(NewEntry.__struct_fields__) | _SERVER_SET


@memory_command(name="import")
@click.option("--skip-existing", is_flag=True, help="Skip entries that exist already.")
@click.option("--as-is", is_flag=True, help="Judge no text, and refuse none: for a move.")
@click.argument("file", type=click.File("rb"))
def command(client: Client, skip_existing: bool, as_is: bool, file: BinaryIO) -> None:
    """Create entries from JSON Lines, such as those of `export`; - reads standard input.

    The importing agent owns the new entries, which have version 1. Entities get new ids, by which
    the facts on later lines name them. Entries are written in batches of up to a hundred, all or
    none. The import stops at the first line that cannot be written. The end tells how many texts
    are not worth keeping; a tenant may refuse them, see `worthiness`.
    """
    written = skipped = 0
    verdicts: list[Verdict | None] = []
    ids: dict[str, str] = {}
    with _progress(file) as bar:
        for chunk in _chunks(file, bar):
            made = _write(client, chunk, skip_existing, ids, judge=not as_is)
            written += len(made)
            verdicts += made.verdicts
            skipped += len(chunk) - len(made)
    click.echo(f"{count_of(written, *ENTRIES)} imported, {skipped} skipped", err=True)
    tell_verdicts(verdicts)


def _progress(file: BinaryIO) -> Any:
    try:
        size = os.fstat(file.fileno()).st_size or None
    except (OSError, AttributeError):
        size = None
    return tqdm(total=size, unit="B", unit_scale=True, desc="import", leave=False, disable=None)


def _chunks(file: BinaryIO, bar: Any) -> Iterator[list[Numbered]]:
    """The entries in batches, each entry with its line number."""
    chunk: list[Numbered] = []
    for number, line in enumerate(file, start=1):
        bar.update(len(line))
        if line.strip():
            try:
                element = _element(line)
            except ValidationError as error:
                raise _make_stop_error(
                    number, chunk[0][0] if chunk else number, error.detail
                ) from None
            if chunk and _names_entities(element) and not _names_entities(chunk[-1][1]):
                yield chunk
                chunk = []
            chunk.append((number, element))
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
        # The instant of expiry is kept; a duration would restart.
        fields["ttl"] = None
    if isinstance(fields.get("subjects"), list):
        # The digest of a name beside a sealed value has no meaning in another store.
        fields["subjects"] = [one for one in fields["subjects"] if not str(one).startswith("~")]
    return {name: one for name, one in fields.items() if name == "id" or name not in _SERVER_SET}


def _names_entities(element: dict[str, Any]) -> bool:
    """Whether an entry names entities by the ids that they have where it comes from, and so needs
    those of the batches before."""
    value = element.get("value") if element.get("kind") in ("entity", "fact") else None
    return isinstance(value, dict) and not value.keys().isdisjoint(_NAMED_BY_ID)


def _with_new_ids(element: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """The entry without its id, and with the new ids of the entities that it names."""
    element = {name: one for name, one in element.items() if name != "id"}
    if _names_entities(element):
        named = {name: ids.get(one, one) for name, one in element["value"].items()
                 if name in _NAMED_BY_ID}  # fmt: skip
        element["value"] = {**element["value"], **named}
    return element


def _write(
    client: Client,
    chunk: list[Numbered],
    skip_existing: bool,
    ids: dict[str, str],
    *,
    judge: bool,
) -> BatchResult:
    """Writes a batch; returns the new entries.

    ids: the new ids by the ids of the lines
    """
    waiting = list(chunk)
    while waiting:
        try:
            made = client.memory.batch([_with_new_ids(one, ids) for _, one in waiting], judge=judge)
            verdicts = made.verdicts or (None,) * len(waiting)
            stored = [
                one
                for (_, one), verdict in zip(waiting, verdicts, strict=True)
                if verdict is None or not verdict.refused
            ]
            pairs = zip(stored, made, strict=True)
            ids.update({one["id"]: entry.id for one, entry in pairs if one.get("id")})
            return made
        except EntryExistsError as error:
            if not skip_existing or error.index is None:
                raise _at(chunk, waiting, error) from error
            del waiting[error.index]
        except MemorywallError as error:
            raise _at(chunk, waiting, error) from error
    return BatchResult((), created=0, updated=0)


def _at(
    chunk: list[Numbered], waiting: list[Numbered], error: MemorywallError
) -> ConfigurationError:
    line = waiting[error.index or 0][0]
    reason = error.detail
    if isinstance(error, EntryExistsError):
        reason = "an entry with this namespace and key exists; pass --skip-existing to skip it"
    return _make_stop_error(line, chunk[0][0], reason)


def _make_stop_error(line: int, first: int, reason: str) -> ConfigurationError:
    """The error of an import that stops at a line; earlier batches have been written."""
    written = f"the lines before line {first} are written" if first > 1 else "nothing is written"
    return ConfigurationError(f"line {line}: {reason}; {written}")
