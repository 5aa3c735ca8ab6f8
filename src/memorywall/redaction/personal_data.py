"""Finds personal data in text: payment cards, IBANs, e-mail addresses, phone numbers, national ids.

A number counts only if its check digits are right. Numbers without separators, which order numbers
may equal by chance, do not count behind words such as `order` or `invoice`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from memorywall.redaction.national_ids import FORMS
from memorywall.redaction.phone_numbers import is_phone_number

PersonalDataKind = Literal["card", "iban", "email", "phone", "national_id"]
KINDS: tuple[PersonalDataKind, ...] = ("card", "iban", "email", "phone", "national_id")

_START = r"(?<![\w#/@-])(?<![0-9][.,+])"
_END = r"(?!-?\w)(?![.,/:][0-9])"
_MAYBE = re.compile(r"[0-9]{2}|@")
_EMAIL = re.compile(
    r"(?<![\w.!#$%&'*+/=?^`{|}~-])[\w!#$%&'*+=?^`{|}~-](?:[\w.!#$%&'*+=?^`{|}~-]{0,62}[\w+=~-])?"
    r"@(?:[^\W_](?:[^\W_]|-){0,62}\.)+[^\W\d_]{2,24}(?!\w)(?!:[\w./~])(?!-\w)"
)
_RETINA = re.compile(r"@[0-9]x\.")
_IN_URL = re.compile(r"://\S*$")
_IBAN_START = re.compile(r"(?<![\w/#-])[A-Z]{2}[0-9]{2}(?=[ -]?[A-Z0-9])", re.IGNORECASE)
_CARD = re.compile(
    _START + r"(?:[0-9]{14,19}|[0-9]{4}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?"
    r"|[0-9]{4}([ -])[0-9]{6}\2[0-9]{4,5})" + _END
)
_CARD_ISSUERS = re.compile(
    r"4(?:.{15}|.{18})|(?:5[1-5]|22[2-9]|2[3-6]|27[01]|2720).*|3[47].{13}"
    r"|3(?:0[0-5]|[689]).{11,16}|6(?:011|4[4-9]|5|2).{12,}|35(?:2[89]|[3-8]).{12,}"
)
_PHONE = re.compile(
    r"(?<![\w+*/^)])\+[0-9]{1,15}(?:[ .-]?\(0\)[ .-]?[0-9]{1,14})?"
    r"(?:(?:[ .-]\(?|\()[0-9]{1,14}(?:\)[ .-]?[0-9]{1,14})?){0,7}(?!\w)(?![%$€£])(?![.,:][0-9])"
)
_NATIONAL = tuple((re.compile(_START + f"(?:{form})" + _END), check) for form, check in FORMS)
_GAP = re.compile(r"(?<=[0-9)])[ .-]")
_SEPARATORS = str.maketrans("", "", " -.()")
_LABEL_LENGTH = 40
_URL_LENGTH = 256
_OTHER_NUMBER = re.compile(
    r"\b(?:order|invoice|tracking|track|ticket|ref(?:erence)?|case|sku|serial|part|shipment|parcel"
    r"|timestamp|time|build|isbn|ean|upc|barcode|transaction|trace|request|job|account|message|user"
    r"|id|row|commit|seed|bestell\w*|rechnung\w*|sendung\w*)"
    r"[\s_-]?(?:no\.?|number|num\.?|nr\.?|nummer|id|code)?\W{0,3}(?:is|was|ist)?\W{0,3}$",
    re.IGNORECASE,
)
_PERSONAL_NUMBER = re.compile(
    r"card|visa|amex|tax|steuer|fiscal|national|\bdni|\bnie\b|\bnir\b|cpf|insee|social|ssn|securit"
    r"|codice|identi|idnr",
    re.IGNORECASE,
)
# The lengths of IBANs by country (SWIFT registry, release 99).
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22,
    "BI": 27, "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27,
    "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27,
    "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28,
    "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28,
    "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22,
    "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23,
    "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24,
    "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25, "SV": 28,
    "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}  # fmt: skip


class Found(NamedTuple):
    """Personal data in a text: the positions in characters, `end` exclusive, and the kind."""

    start: int
    end: int
    kind: PersonalDataKind


def find(text: str) -> tuple[Found, ...]:
    """The personal data in a text, in the order of the text, without overlaps."""
    if _MAYBE.search(text) is None:
        return ()
    taken: list[Found] = []
    covered = bytearray(len(text))
    for one in _candidates(text):
        if covered.find(1, one.start, one.end) < 0:
            covered[one.start : one.end] = b"\1" * (one.end - one.start)
            taken.append(one)
    return tuple(sorted(taken))


def mask(text: str) -> tuple[str, tuple[PersonalDataKind, ...]]:
    """The text with `[card]` in place of a card and so on, and the kinds found, without repeats, in
    the order of `KINDS`."""
    found = find(text)
    if not found:
        return text, ()
    parts: list[str] = []
    end = 0
    for one in found:
        parts += (text[end : one.start], f"[{one.kind}]")
        end = one.end
    return "".join((*parts, text[end:])), _kinds(found)


def apply(policy: str, value: Any) -> tuple[Any, tuple[PersonalDataKind, ...]]:
    """Applies a policy to a text or to every text in a JSON value, the names of members too.

    policy: `keep` looks at nothing, `mark` finds and changes nothing, `mask` replaces
    value: a text or a JSON value; it is not changed
    Returns the value to store and the kinds found, in the order of `KINDS`; none under `keep`.
    """
    if policy == "keep":
        return value, ()
    kinds: set[PersonalDataKind] = set()
    masked = _mask(value, kinds)
    return (masked if policy == "mask" else value), tuple(one for one in KINDS if one in kinds)


def choose_stricter(one: str, other: str) -> str:
    """The stricter of two policies, for text that two of them apply to: `mask`, `mark`, `keep`."""
    return min(one, other, key=("mask", "mark", "keep").index)


def _mask(value: Any, kinds: set[PersonalDataKind]) -> Any:
    if isinstance(value, str):
        text, found = mask(value)
        kinds.update(found)
        return text
    if isinstance(value, list | tuple):
        return [_mask(one, kinds) for one in value]
    if isinstance(value, dict):
        return _mask_members(value, kinds)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10**10:
        # A card may have been sent as a number.
        text, found = mask(str(value))
        kinds.update(found)
        return text if found else value
    return value


def _mask_members(value: dict[str, Any], kinds: set[PersonalDataKind]) -> dict[str, Any]:
    """The members of an object. Names that are equal once masked are numbered, so that none is
    lost."""
    members: dict[str, Any] = {}
    counts: dict[str, int] = {}
    for name, one in value.items():
        masked = free = _mask(name, kinds)
        if free != name:
            number = counts[masked] = counts.get(masked, 0) + 1
            free = masked if number == 1 and masked not in value else f"{masked} {number}"
        members[free] = _mask(one, kinds)
    return members


def _kinds(found: tuple[Found, ...]) -> tuple[PersonalDataKind, ...]:
    kinds = {one.kind for one in found}
    return tuple(kind for kind in KINDS if kind in kinds)


def _candidates(text: str) -> Iterator[Found]:
    """Everything that is valid, the kinds whose form is clearer first."""
    yield from _email_addresses(text)
    for match in _IBAN_START.finditer(text):
        end = _end_of_iban(text, match.start())
        if end is not None:
            yield Found(match.start(), end, "iban")
    for match in _PHONE.finditer(text):
        length = _length_of_phone_number(match[0])
        if length:
            yield Found(match.start(), match.start() + length, "phone")
    for match in _CARD.finditer(text):
        if _is_card(match[0].translate(_SEPARATORS)) and not _is_other_number(text, match):
            yield Found(match.start(), match.end(), "card")
    for pattern, is_valid in _NATIONAL:
        for match in pattern.finditer(text):
            number = match[0].translate(_SEPARATORS).upper()
            if is_valid(number) and not _is_other_number(text, match):
                yield Found(match.start(), match.end(), "national_id")


def _email_addresses(text: str) -> Iterator[Found]:
    for match in _EMAIL.finditer(text) if "@" in text else ():
        before = text[max(0, match.start() - _URL_LENGTH) : match.start()]
        if not _RETINA.search(match[0]) and not _IN_URL.search(before):
            yield Found(match.start(), match.end(), "email")


def _length_of_phone_number(text: str) -> int:
    """The length of the longest phone number at the start of a text in whole groups; 0 for none."""
    ends = (len(text), *(match.start() for match in reversed([*_GAP.finditer(text)])))
    for end in ends:
        number = text[:end]
        digits = number.replace("(0)", "").translate(_SEPARATORS)[1:]
        if number.count("(") == number.count(")") and is_phone_number(digits):
            return end
    return 0


def _is_other_number(text: str, match: re.Match[str]) -> bool:
    """Whether the words before a number without separators say that it is no personal data."""
    if not match[0].isdigit():
        return False
    before = text[max(0, match.start() - _LABEL_LENGTH) : match.start()]
    return _OTHER_NUMBER.search(before) is not None and _PERSONAL_NUMBER.search(before) is None


def _is_card(digits: str) -> bool:
    """Whether digits are those of a card: the range of an issuer, its length, the Luhn sum."""
    if not 14 <= len(digits) <= 19 or _CARD_ISSUERS.fullmatch(digits) is None:
        return False
    if digits[0] in "52" and len(digits) != 16:
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _end_of_iban(text: str, start: int) -> int | None:
    """The end of the IBAN that begins here, None if none does."""
    length = _IBAN_LENGTHS.get(text[start : start + 2].upper())
    if length is None:
        return None
    taken, end = "", start
    while len(taken) < length and end < len(text):
        character = text[end]
        if character.isascii() and character.isalnum():
            taken += character.upper()
        elif character not in " -" or not text[end - 1].isalnum():
            return None
        end += 1
    if len(taken) < length or (end < len(text) and text[end].isalnum()):
        return None
    number = "".join(str(int(character, 36)) for character in taken[4:] + taken[:4])
    return end if int(number) % 97 == 1 else None
