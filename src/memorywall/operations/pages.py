"""The position and the form of a page of a query: cursors and chosen fields."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.expressions.entry_fields import values_at
from memorywall.expressions.printer import print_path
from memorywall.records.condition import Path
from memorywall.records.entry import Entry
from memorywall.records.errors import RequestError
from memorywall.records.filter import EntryFilter, position_of
from memorywall.wire.entries import EntryListQuery

FIRST = "*"
"""The cursor of the first page."""
_BAD = "`cursor` must be `*` or the `next_cursor` of a page of the same query"


class _Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The content of a cursor: a position among entries that the caller has read.

    query: a digest of the conditions and the order, because the position has no meaning in another
        query. The access of the caller is checked for each page, so a cursor grants nothing.
    total: the number of matches when the first page was read
    """

    query: str
    place: str | int
    id: str
    total: int


def place_page(asked: EntryListQuery, wanted: EntryFilter) -> tuple[EntryFilter, int | None]:
    """Returns the filter with the order and the position of the page, and the total of the first
    page, None for the first page itself. Raises RequestError for a cursor of another query."""
    if asked.as_of is not None:
        raise RequestError("`as_of` cannot be combined with `order_by`, `direction` or `cursor`")
    if asked.cursor is not None and asked.offset:
        raise RequestError("`cursor` cannot be combined with `offset`")
    order = asked.order_by or "created"
    ascending = asked.direction == "asc" if asked.direction else order == "key"
    wanted = replace(wanted, order=order, ascending=ascending)
    if asked.cursor in (None, FIRST):
        return wanted, None
    cursor = _decode(asked.cursor or "")
    is_number = isinstance(cursor.place, int)
    if cursor.query != _digest(asked) or is_number is not (order == "priority"):
        raise RequestError(_BAD)
    return replace(wanted, position=(cursor.place, cursor.id), counted=False), cursor.total


def next_cursor(
    asked: EntryListQuery, wanted: EntryFilter, entries: Sequence[Entry], total: int
) -> str | None:
    """Returns the cursor of the page after these entries; None after the last page."""
    if wanted.limit is None or len(entries) < wanted.limit:
        return None
    place, entry_id = position_of(entries[-1], wanted.order)
    content = msgspec.json.encode(_Cursor(_digest(asked), place, entry_id, total))
    return urlsafe_b64encode(content).decode().rstrip("=")


def named_values(paths: Iterable[Path], entry: Entry) -> dict[str, Any]:
    """Returns the values of an opened entry at some paths, by the text of the path."""
    paths = list(paths)
    return dict(zip(map(print_path, paths), values_at(paths, entry), strict=True))


def refuse_page(asked: EntryListQuery) -> None:
    """Raises RequestError for parameters of a page in a query that only counts."""
    for name in ("fields", "cursor", "order_by", "direction"):
        if getattr(asked, name) is not None:
            raise RequestError(f"`count_only` cannot be combined with `{name}`")


def _digest(asked: EntryListQuery) -> str:
    """Returns a digest of the conditions and the order of a query."""
    content = msgspec.json.encode(replace(asked, cursor=None, limit=None, fields=None, offset=0))
    return blake2b(content, digest_size=9).hexdigest()


def _decode(text: str) -> _Cursor:
    try:
        content = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        cursor = msgspec.json.decode(content, type=_Cursor)
    except (ValueError, msgspec.MsgspecError):
        raise RequestError(_BAD) from None
    is_clean = "\0" not in cursor.id and "\0" not in str(cursor.place)
    if not is_clean or (isinstance(cursor.place, int) and not 0 <= cursor.place <= 2):
        raise RequestError(_BAD)
    return cursor
