"""Phone numbers in international form (E.164 and ITU-T E.123)."""

from __future__ import annotations

# Calling codes of two digits; 1 and 7 have one digit and every other code has three.
_TWO_DIGITS = frozenset((
    "20", "27", "30", "31", "32", "33", "34", "36", "39", "40", "41", "43", "44", "45", "46",
    "47", "48", "49", "51", "52", "53", "54", "55", "56", "57", "58", "60", "61", "62", "63",
    "64", "65", "66", "81", "82", "84", "86", "90", "91", "92", "93", "94", "95", "98",
))  # fmt: skip
_UNASSIGNED = frozenset((
    "210", "214", "215", "217", "219", "259", "279", "28", "384", "388", "83", "80", "801",
    "802", "803", "804", "805", "806", "807", "809", "87", "871", "872", "873", "874", "875",
    "876", "877", "89", "851", "854", "857", "858", "859", "884", "885", "887", "889", "969",
    "978", "990", "997", "999",
))  # fmt: skip
# The least and the most digits after the calling code, where a country fixes them.
_LENGTHS = {
    "1": (10, 10), "7": (10, 10), "20": (8, 10), "27": (9, 9), "30": (10, 10), "31": (9, 9),
    "32": (8, 9), "33": (9, 9), "34": (9, 9), "39": (8, 11), "41": (9, 9), "44": (9, 10),
    "45": (8, 8), "46": (7, 10), "47": (8, 8), "48": (9, 9), "49": (7, 12), "52": (10, 10),
    "55": (10, 11), "61": (9, 9), "86": (10, 11), "90": (10, 10), "91": (10, 10),
    "351": (9, 9), "353": (7, 9), "358": (6, 11), "420": (9, 9),
}  # fmt: skip
_OTHERS = (7, 12)
_LONGEST = 15


def is_phone_number(digits: str) -> bool:
    """Whether these digits, as they follow a `+`, are a phone number of an assigned calling code.

    digits: without separators and without the trunk prefix `(0)`
    """
    code = digits[0] if digits[0] in "17" else digits[:2]
    if len(code) == 2 and code not in _TWO_DIGITS:
        code = digits[:3]
    number = digits[len(code) :]
    least, most = _LENGTHS.get(code, _OTHERS)
    if digits[0] == "0" or code in _UNASSIGNED or code[:2] in _UNASSIGNED:
        return False
    if not least <= len(number) <= most or len(digits) > _LONGEST:
        return False
    if code == "1":
        return number[0] in "23456789" and number[3] in "23456789"
    # Italian numbers alone keep the zero of their area code.
    return number[0] != "0" or code == "39"
