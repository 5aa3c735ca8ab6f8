"""Personal data: what is found in generated texts, and what is not."""

from __future__ import annotations

import random
import string
import time
import uuid
from itertools import pairwise

import pytest

from memorywall.redaction.personal_data import apply, find, mask
from tests.support.extent import chosen_seed, extent

_CONTEXTS = (
    "{}", "my number is {}, thanks", "Please use {} for the refund.", "({})", "pay with {}; asap",
    "{} is what I have on file, dated 2024-05-01", "here:\n{}\nbye", '{{"field": "{}"}}',
)  # fmt: skip
_IBANS = {"DE": 18, "FR": 23, "GB": 18, "NL": 14, "ES": 20, "IT": 23, "CH": 17, "PL": 24}


def _digits(dice: random.Random, count: int) -> str:
    return "".join(dice.choice(string.digits) for _ in range(count))


def _card(dice: random.Random) -> str:
    start, length = dice.choice((("4", 16), ("51", 16), ("2221", 16), ("37", 15), ("6011", 16)))
    body = start + _digits(dice, length - len(start) - 1)
    check = 0
    for index, digit in enumerate(reversed(body)):
        doubled = int(digit) * (2 if index % 2 == 0 else 1)
        check += doubled - 9 if doubled > 9 else doubled
    number = body + str(-check % 10)
    if dice.random() < 0.5:
        return number
    cuts = (0, 4, 8, 12, 16) if length == 16 else (0, 4, 10, 15)
    return dice.choice(" -").join(number[a:b] for a, b in pairwise(cuts))


def _iban(dice: random.Random) -> str:
    country = dice.choice(sorted(_IBANS))
    body = _digits(dice, _IBANS[country])
    if country in ("GB", "NL"):
        body = "ABNA" + body[4:]
    check = 98 - int("".join(str(int(one, 36)) for one in f"{body}{country}00")) % 97
    number = f"{country}{check:02}{body}"
    if dice.random() < 0.5:
        return number
    return " ".join(number[start : start + 4] for start in range(0, len(number), 4))


def _email(dice: random.Random) -> str:
    name = dice.choice(("ann", "j.doe", "max+news", "o'neil", "first_last", "müller", "x99"))
    host = dice.choice(("example.com", "mail.example.co.uk", "uni-bonn.de", "my-shop.io"))
    return f"{name}{dice.randrange(100)}@{host}"


def _phone(dice: random.Random) -> str:
    return dice.choice(
        (
            f"+4930{_digits(dice, 7)}", f"+49 (0)171 {_digits(dice, 7)}",
            f"+1 (212) 5{_digits(dice, 2)}-{_digits(dice, 4)}", f"+1212555{_digits(dice, 4)}",
            f"+44 20 7{_digits(dice, 3)} {_digits(dice, 4)}", f"+33 6 12 34 5{_digits(dice, 1)} 78",
            f"+91 98{_digits(dice, 3)} {_digits(dice, 5)}", f"+55 11 9{_digits(dice, 4)}-1234",
            f"+86 138 {_digits(dice, 4)} {_digits(dice, 4)}", f"+351 91{_digits(dice, 7)}",
        )
    )  # fmt: skip


def _german(dice: random.Random) -> str:
    digits = dice.sample("123456789", 9)
    digits.insert(dice.randrange(1, 9), dice.choice(digits))
    product = 10
    for digit in digits:
        total = (int(digit) + product) % 10
        product = (total or 10) * 2 % 11
    return "".join(digits) + str((11 - product) % 10)


def _spanish(dice: random.Random) -> str:
    number = dice.randrange(10**7, 10**8)
    letter = "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]
    return f"{number}{dice.choice(('', '-'))}{letter}"


def _french(dice: random.Random) -> str:
    body = f"{dice.choice('12')}{_digits(dice, 2)}{dice.randrange(1, 13):02}{_digits(dice, 8)}"
    return f"{body}{97 - int(body) % 97:02}"


def _brazilian(dice: random.Random) -> str:
    number = [dice.randrange(10) for _ in range(9)]
    for _ in range(2):
        weights = range(len(number) + 1, 1, -1)
        rest = sum(a * b for a, b in zip(number, weights, strict=True)) % 11
        number.append(0 if rest < 2 else 11 - rest)
    text = "".join(map(str, number))
    return dice.choice((text, f"{text[:3]}.{text[3:6]}.{text[6:9]}-{text[9:]}"))


def _italian(dice: random.Random) -> str:
    # Published examples, whose check letters an authority has computed.
    return dice.choice(("RSSMRA85T10A562S", "MRTMTT91D08F205J", "VRDGPP13R10B293P"))


_VALID = {
    "card": _card, "iban": _iban, "email": _email, "phone": _phone, "german": _german,
    "spanish": _spanish, "french": _french, "brazilian": _brazilian, "italian": _italian,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(_VALID))
def test_valid_ones_are_found(name: str) -> None:
    dice = random.Random(f"{chosen_seed()} {name}")
    kind = name if name in ("card", "iban", "email", "phone") else "national_id"
    tries, missed = extent(150, long=10_000), []
    for _ in range(tries):
        secret = _VALID[name](dice)
        text = dice.choice(_CONTEXTS).format(secret)
        masked, kinds = mask(text)
        if kinds != (kind,) or secret in masked or masked != text.replace(secret, f"[{kind}]"):
            missed.append(text)
    print(f"{name}: {tries - len(missed)} of {tries} found")
    assert len(missed) <= 0.02 * tries, missed[:5]


def _ordinary(dice: random.Random) -> str:
    number, words = dice.randrange, ("ship", "check", "review", "the parcel", "it", "customer")
    return dice.choice(
        (
            lambda: f"Your order {_digits(dice, 16)} has left, invoice no. {_digits(dice, 11)}.",
            lambda: f"Order #{_digits(dice, 12)}, tracking number {_digits(dice, 14)}",
            lambda: f"We met on 2024-{number(1, 13):02}-{number(1, 29):02} at {number(24)}:30.",
            lambda: f"Release v{number(9)}.{number(20)}.{number(99)}-rc{number(9)} of react@18.2.0",
            lambda: f"It costs ${number(9)},{_digits(dice, 3)}.00, or {_digits(dice, 7)} yen.",
            lambda: f"trace {uuid.UUID(int=dice.getrandbits(128), version=4)} failed",
            lambda: f"commit {dice.getrandbits(160):040x} broke it; md5 {dice.getrandbits(128):x}",
            lambda: f"for i in range({number(10**6)}): total += row[{number(99)}] @ matrix.T",
            lambda: f"call extension {number(10**4)} or 0{_digits(dice, 3)}-{_digits(dice, 6)}",
            lambda: f"timestamp {17 * 10**11 + number(10**10)} and {17 * 10**18 + number(10**17)}",
            lambda: f"lat {number(90)}.{_digits(dice, 12)}, lon -{number(180)}.{_digits(dice, 12)}",
            lambda: f"git clone git@github.com:team/repo{number(99)}.git; see icon@2x.png",
            lambda: f"up +{number(10**5)}%, now +{number(10)} 000 000 users, ISO 8601 +01:00",
            lambda: f"10.{number(255)}.{number(255)}.1:8080 answered in {number(10**9)} ns",
            lambda: f"SKU-{_digits(dice, 4)}-{_digits(dice, 4)}, size {number(50)} x {number(50)}",
            lambda: f"https://shop.example/item/{_digits(dice, 16)}?ref={_digits(dice, 11)}",
            lambda: f"ISBN 978-{number(9)}-{_digits(dice, 2)}-{_digits(dice, 6)}-{number(9)}",
            lambda: f"Please {dice.choice(words)} {dice.choice(words)} by {number(1, 28)} March.",
            lambda: f"@ann said 100000000000{number(10)} rows, 1,000,{_digits(dice, 3)} new",
            lambda: f"flight LH{_digits(dice, 4)}, booking {number(10**5)}, gate B{number(60)}",
        )
    )()  # fmt: skip


def test_ordinary_messages_hold_nothing() -> None:
    dice = random.Random(chosen_seed())
    tries = extent(4_000, long=100_000)
    wrong = [text for text in (_ordinary(dice) for _ in range(tries)) if find(text)]
    print(f"{len(wrong)} of {tries} ordinary messages are found")
    assert len(wrong) < 0.001 * tries, wrong[:5]


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112", "DE89 3704 0044 0532 0130 01", "00000000000", "11111111111",
        "12345678A", "000-12-3456", "666-12-3456", "+999 1234567", "+49 123", "a@b", "@ann",
        "postgres://user:pass@db.example.com/x", "+1 000 555 0123",
    ],
)  # fmt: skip
def test_what_is_not_valid_is_not_found(text: str) -> None:
    assert find(text) == ()


def test_a_policy_walks_json_values() -> None:
    value = {
        "notes": ["mail ann@example.com", {"n": 4111111111111111}],
        "ann@example.com": 1,
        "bob@example.com": True,
    }
    assert apply("keep", value) == (value, ())
    assert apply("mark", value) == (value, ("card", "email"))
    masked, kinds = apply("mask", value)
    assert masked == {
        "notes": ["mail [email]", {"n": "[card]"}],
        "[email]": 1,
        "[email] 2": True,
    }
    assert kinds == ("card", "email")


@pytest.mark.parametrize("unit", ["1", "+1 ", "a@b.co ", "1-", "(", "DE89", "a.", "://a@b.co "])
def test_the_time_grows_with_the_length_of_the_text(unit: str) -> None:
    begun = time.process_time()
    find("+" + unit * (100_000 // len(unit)))
    assert time.process_time() - begun < 2
