"""Validators of national identification numbers: Germany, Spain, France, Italy, Brazil, USA.

Each function takes the number in upper case without separators and returns whether its check
characters are right. The number of the USA has none, so that its ranges are checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_NIE_DIGITS = {"X": "0", "Y": "1", "Z": "2"}
_CORSICA = {"2A": "19", "2B": "18"}
# The values of the characters at odd positions of an Italian code (decree of 23 December 1976).
_ODD = (
    1,
    0,
    5,
    7,
    9,
    13,
    15,
    17,
    19,
    21,
    2,
    4,
    18,
    20,
    11,
    3,
    6,
    8,
    12,
    14,
    16,
    10,
    22,
    25,
    24,
    23,
)
_OMOCODIA = str.maketrans("LMNPQRSTUV", "0123456789")


def is_german(number: str) -> bool:
    """The tax identification number: eleven digits, ISO 7064 MOD 11,10. Among the first ten digits
    exactly one occurs twice or three times."""
    counts = sorted(Counter(number[:10]).values())
    if number[0] == "0" or counts[-1] not in (2, 3) or counts[-2] != 1:
        return False
    product = 10
    for digit in number[:10]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(number[10])


def is_spanish(number: str) -> bool:
    """The DNI, eight digits and a letter, or the NIE, which begins with X, Y or Z."""
    digits = _NIE_DIGITS.get(number[0], number[0]) + number[1:8]
    return _DNI_LETTERS[int(digits) % 23] == number[8]


def is_french(number: str) -> bool:
    """The NIR: 13 characters and two check digits."""
    department = _CORSICA.get(number[5:7], number[5:7])
    month = int(number[3:5])
    if not (1 <= month <= 12 or 20 <= month <= 42 or month >= 50):
        return False
    return 97 - int(number[:5] + department + number[7:13]) % 97 == int(number[13:])


def is_italian(number: str) -> bool:
    """The codice fiscale: 15 characters and a check letter."""
    if not 1 <= int(number[9:11].translate(_OMOCODIA)) % 40 <= 31:
        return False
    total = 0
    for index, character in enumerate(number[:15]):
        value = int(character) if character.isdigit() else ord(character) - ord("A")
        total += value if index % 2 else _ODD[value]
    return chr(ord("A") + total % 26) == number[15]


def is_brazilian(number: str) -> bool:
    """The CPF: nine digits and two check digits. Eleven equal digits are no CPF."""
    if len(set(number)) == 1:
        return False
    for length in (9, 10):
        total = sum(
            int(digit) * weight
            for digit, weight in zip(number[:length], range(length + 1, 1, -1), strict=True)
        )
        if total * 10 % 11 % 10 != int(number[length]):
            return False
    return True


def is_american(number: str) -> bool:
    """The social security number: three parts, none of which may be zero."""
    area, group, serial = number[:3], number[3:5], number[5:]
    return area not in {"000", "666"} and area < "900" and group != "00" and serial != "0000"


FORMS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    (r"[0-9]{11}|[0-9]{2} [0-9]{3} [0-9]{3} [0-9]{3}", is_german),
    (r"[0-9]{11}|[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", is_brazilian),
    (r"[0-9]{8}-?[A-Za-z]|[XYZxyz]-?[0-9]{7}-?[A-Za-z]", is_spanish),
    (
        r"[12] ?[0-9]{2} ?[0-9]{2} ?(?:[0-9]{2}|2[ABab]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}",
        is_french,
    ),
    (
        r"[A-Za-z]{6} ?[0-9L-NP-Vl-np-v]{2}[A-EHLMPR-Ta-ehlmpr-t][0-9L-NP-Vl-np-v]{2}"
        r" ?[A-Za-z][0-9L-NP-Vl-np-v]{3}[A-Za-z]",
        is_italian,
    ),
    (r"[0-9]{3}-[0-9]{2}-[0-9]{4}", is_american),
)
"""The written forms of the numbers as regular expressions, and their validators."""
