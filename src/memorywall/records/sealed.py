"""The part of a record that is stored sealed."""

from __future__ import annotations

from typing import NamedTuple


class SealedPart(NamedTuple):
    """The sealed fields of a record, encrypted together. Until they are opened the fields of the
    record are empty.

    key_id: the data key they are sealed with
    content: the encrypted JSON text of the fields, behind its nonce
    """

    key_id: str
    content: bytes
