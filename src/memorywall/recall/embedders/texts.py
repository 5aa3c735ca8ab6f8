"""Strings as they come, made fit for a tokenizer or a JSON body."""

from __future__ import annotations

from collections.abc import Sequence


def prepared(texts: Sequence[str], longest: int) -> list[str]:
    """Each text cut to `longest` characters, without unpaired surrogates; "" for nothing but space.

    Reading stops early because a vector only ever stands for the beginning of a text, and the time
    to split a text into tokens grows with all of it.
    """
    return [_encodable(text[:longest]).strip() for text in texts]


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # Pairs of surrogates become their character, single ones a replacement character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
