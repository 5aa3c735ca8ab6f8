"""Prepares strings for a tokenizer or a JSON body."""

from __future__ import annotations

from collections.abc import Sequence


def prepared(texts: Sequence[str], longest: int) -> list[str]:
    """Each text truncated to `longest` characters, without unpaired surrogates; "" for a blank
    text.

    Texts are truncated early, because a vector represents only the beginning of a text, and the
    time of the tokenizer grows with the length.
    """
    return [_encodable(text[:longest]).strip() for text in texts]


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # Pairs of surrogates become their character; single ones become a replacement character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
