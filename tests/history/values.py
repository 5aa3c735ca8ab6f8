"""Values that tell which write they are from, and whether they are of one write altogether."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec

from tests.history.record import Seen

_PIECES = 4
_TAGS = 64
# Entries of very different sizes: within a database page, just over it, and over several.
_SIZES = (0, 0, 0, 0, 40, 40, 300, 300, 1_100, 2_400)
_FILLING = "abcdefghijklmnopqrstuvwxyz0123456789" * 100


class Value(msgspec.Struct):
    """Every piece begins with the mark, and the checksum is over all pieces."""

    mark: str
    pieces: list[str]
    checksum: int


class EntryReply(msgspec.Struct):
    """What the checker needs of an entry in a reply."""

    id: str
    version: int
    tags: list[str]
    value: msgspec.Raw = msgspec.Raw(b"null")


_decode_value = msgspec.json.Decoder(Value).decode


def make_value(mark: str) -> dict[str, Any]:
    """The value that a write with this mark sends."""
    number = crc32(mark.encode())
    size = _SIZES[number % len(_SIZES)]
    pieces = [f"{mark}:{index}:{_FILLING[index:size]}" for index in range(_PIECES)]
    return {"mark": mark, "pieces": pieces, "checksum": _checksum(pieces)}


def tag_of(mark: str) -> str:
    """The tag that goes with a value: it is kept in another place and must be of the same write."""
    return f"t{crc32(mark.encode()) % _TAGS}"


def seen_in(entry: EntryReply) -> Seen:
    """What a reply shows, with its parts compared."""
    try:
        value = _decode_value(entry.value)
    except msgspec.DecodeError:
        return Seen(entry.id, entry.version, "", whole=False)
    whole = (
        len(value.pieces) == _PIECES
        and all(
            piece.startswith(f"{value.mark}:{index}:") for index, piece in enumerate(value.pieces)
        )
        and value.checksum == _checksum(value.pieces)
        and entry.tags == [tag_of(value.mark)]
    )
    return Seen(entry.id, entry.version, value.mark, whole)


def _checksum(pieces: list[str]) -> int:
    return crc32("|".join(pieces).encode())
