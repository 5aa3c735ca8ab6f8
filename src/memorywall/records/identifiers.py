"""Generated ids, and the rule for names that clients choose."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from threading import Lock
from unicodedata import bidirectional, category, combining, normalize
from uuid import UUID

from memorywall.records.clock import Clock

LONGEST_NAME = 256
LONGEST_AGENT = 128
LONGEST_KEY = 512
LONGEST_TAG = 128
MOST_TAGS = 64
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
# These characters have the category of letters and marks, but are invisible.
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
_JOINERS = frozenset("\u200c\u200d")
_EMOJI_JOINER, _EMOJI_STYLES = "\u200d", frozenset("\ufe0e\ufe0f")
_EMOJI_TONES = frozenset(map(chr, range(0x1F3FB, 0x1F400)))
_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Variation selectors, which choose the shape of the character before them."""
_MONGOLIAN_SELECTORS = frozenset("\u180b\u180c\u180d\u180f")
_DEPENDENT = _JOINERS | _SELECTORS | _MONGOLIAN_SELECTORS
"""Invisible characters that have a meaning in some places."""
_NEWLY_REFUSED = frozenset("\u2800\U0001d159") | _SELECTORS | _MONGOLIAN_SELECTORS
"""Invisible characters that names of older versions may have."""
_STYLED = frozenset("\u203c\u2049\u2139\u3030")
"""The characters with two styles, text and emoji, that are no symbols."""
_KEYCAP = "\u20e3"
_VIRAMA = 9
"""The combining class of the signs that suppress the vowel of a letter of Indic scripts."""
_LOW_BITS = (1 << 60) - 1
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]


class IdSource:
    """Generates ULIDs with a prefix. Each id sorts after the id before it.

    random_bits: returns a uniformly random integer of n bits; tests inject their own
    """

    def __init__(self, clock: Clock, random_bits: Callable[[int], int] | None = None) -> None:
        self._clock = clock
        # An id is no secret: it must be unique, not hard to guess.
        self._random_bits = random_bits or random.Random().getrandbits  # noqa: S311
        self._latest = 0
        self._lock = Lock()

    def next_uuid(self) -> str:
        """A new UUID of version 7 (RFC 9562) in its canonical form."""
        now = self._clock.now()
        with self._lock:
            # The lowest 6 of the random bits are not shown, so the number grows by more than those.
            if now > self._latest >> _RANDOM_BITS:
                self._latest = now << _RANDOM_BITS | self._random_bits(_RANDOM_BITS - 1)
            else:
                self._latest += 64 + self._random_bits(24)
            number = self._latest
        shown = number >> 6
        high, low = shown >> 62, shown & (1 << 62) - 1
        fields = (high >> 12) << 16 | 0x7000 | high & 0xFFF
        return str(UUID(int=fields << 64 | 0b10 << 62 | low))

    def next(self, prefix: str) -> str:
        """A new id such as `mem_01J9ZK3V6Q0000000000000000`.

        prefix: the type of the object, such as `mem`
        """
        now = self._clock.now()
        with self._lock:
            if now > self._latest >> _RANDOM_BITS:
                # The top bit stays clear so that counting up cannot run over into the time.
                self._latest = now << _RANDOM_BITS | self._random_bits(_RANDOM_BITS - 1)
            else:
                self._latest += 1 + self._random_bits(24)
            number = self._latest
        pairs, high, low = _PAIRS, number >> 60, number & _LOW_BITS
        return (
            f"{prefix}_{pairs[high >> 60]}{pairs[high >> 50 & 1023]}{pairs[high >> 40 & 1023]}"
            f"{pairs[high >> 30 & 1023]}{pairs[high >> 20 & 1023]}{pairs[high >> 10 & 1023]}"
            f"{pairs[high & 1023]}{pairs[low >> 50]}{pairs[low >> 40 & 1023]}"
            f"{pairs[low >> 30 & 1023]}{pairs[low >> 20 & 1023]}{pairs[low >> 10 & 1023]}"
            f"{pairs[low & 1023]}"
        )


def is_clean(text: str, longest: int) -> bool:
    """Whether `text` may be a new name; see `clean_name`."""
    return clean_name(text, longest) is not None


def clean_name(text: str, longest: int, *, is_new: bool = True) -> str | None:
    """A name in NFC, the form in which new names are stored: the same characters are one name,
    however a keyboard or a file system composes them. None for a text that may be no name, which
    has 1 to `longest` printable characters without outer spaces.

    Control characters, NUL, surrogates, invisible characters and bidirectional format characters
    are not printable. With them, one name could look like another. Joiners and variation selectors
    are allowed where they change how a word is written; see `_is_joining` and `_is_selecting`.

    is_new: False for a name that may be stored already, since before `_NEWLY_REFUSED`; default:
        true
    """
    is_ascii = text.isascii()
    if not is_ascii:
        text = normalize("NFC", text)
    if not 0 < len(text) <= longest or text != text.strip():
        return None
    if is_ascii:
        return text if text.isprintable() else None
    shown = "".join(
        one
        for place, one in enumerate(text)
        if one not in _DEPENDENT or not (_is_joining(text, place) or _is_selecting(text, place))
    )
    refused = _BLANK_LETTERS | _NEWLY_REFUSED if is_new else _BLANK_LETTERS
    return text if shown.isprintable() and refused.isdisjoint(shown) else None


def _is_joining(text: str, place: int) -> bool:
    """Whether a joiner is within a word of a script that needs joiners: between two Arabic letters,
    or after a virama and before a letter (RFC 5892 appendix A.1 and A.2, without the tables of
    joining types); or within a sequence of emoji (UTS #51)."""
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if text[place] not in _JOINERS or not before or not after:
        return False
    if text[place] == _EMOJI_JOINER and category(after) == "So":
        return before in _EMOJI_TONES or before == "\ufe0f" or category(before) == "So"
    if category(after)[0] not in "LM":
        return False
    return combining(before) == _VIRAMA or bidirectional(before) == bidirectional(after) == "AL"


def _is_selecting(text: str, place: int) -> bool:
    """Whether a variation selector follows a character with variants: a symbol with the styles text
    and emoji, a keycap, an ideograph, or a Mongolian letter."""
    selector, before = text[place], text[place - 1 : place]
    if selector in _JOINERS or not before:
        return False
    if selector in _MONGOLIAN_SELECTORS:
        return "\u1820" <= before <= "\u18aa"
    if selector in _EMOJI_STYLES:
        if before.isascii():
            return before in "#*0123456789" and text[place + 1 : place + 2] == _KEYCAP
        return before in _STYLED or category(before) in ("So", "Sm")
    return "\u3400" <= before <= "\u9fff" or "\U00020000" <= before <= "\U0003ffff"


def normalize_name(text: str) -> str:
    """The form in which new names are stored, NFC, without a check; see `clean_name`."""
    return text if text.isascii() else normalize("NFC", text)


def name_forms(text: str) -> tuple[str, ...]:
    """The forms in which a name may have been stored: NFC first, as given, and NFD."""
    if text.isascii():
        return (text,)
    return tuple(dict.fromkeys((normalize("NFC", text), text, normalize("NFD", text))))


def forms_of_names(names: Iterable[str]) -> tuple[str, ...]:
    """The forms of some names; see `name_forms`."""
    return tuple(form for name in names for form in name_forms(name))


def is_same_name(one: str | None, other: str | None) -> bool:
    """Whether two names, in any of their forms, are the same."""
    if one == other or one is None or other is None or one.isascii():
        return one == other
    return normalize("NFC", one) == normalize("NFC", other)
