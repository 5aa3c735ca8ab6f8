"""Summaries of other languages: sentences are divided, and numbers, dates and names are kept."""

from __future__ import annotations

import pytest

from memorywall.summaries import SourceTurn, summarize
from memorywall.summaries.carriers import carriers
from memorywall.summaries.sentences import sentences
from memorywall.summaries.words import content_words
from tests.summaries.conversations import count

pytestmark = pytest.mark.sqlite("a summary uses no store")

_SAID = {
    "de": ("Hallo! Die Heizung ist seit dem 3. Mai kaputt. Frau Anna Berger zahlt 450,50 €."
           " Ich möchte keinen neuen Vertrag.",
           ["3. Mai", "450,50 €", "Frau Anna Berger", "keinen"]),
    "es": ("¡Hola! La cita es el 12 de marzo a las 10:30. La señora Lucía Gómez"
           " debe 1.200 euros. No quiero otro contrato.",
           ["12 de marzo", "10:30", "1.200 euros", "Gómez", "No quiero"]),
    "zh": ("你好！我们的合同是2026年5月3日签的。价格是4500元。王伟先生不同意。",
           ["2026年5月3日", "4500元", "王伟先生"]),
    "ja": ("こんにちは。予約は5月3日の10時です。料金は12000円です。田中さんは来ません。",
           ["5月3日", "12000円", "田中さん"]),
    "ar": ("مرحبا! الموعد يوم 12 مايو. المبلغ ٤٥٠ ريال. السيد أحمد لا يوافق.",
           ["12", "٤٥٠", "أحمد"]),
    "emoji": ("👋🏽 Hi! 🎉 The party is on 4 May 🎂 for 30 people 👩‍👩‍👧. 😡 Nobody told me!",
              ["4 May", "30 people 👩‍👩‍👧"]),
}  # fmt: skip


@pytest.mark.parametrize("language", _SAID)
def test_numbers_dates_and_names_are_kept(language: str):
    text, kept = _SAID[language]
    said = [
        SourceTurn(1, "user", "A: https://example.org/a?b=1"),
        SourceTurn(2, "user", text),
        *(SourceTurn(place, "assistant", "I see.") for place in range(3, 9)),
    ]
    summary = summarize(said, count(text) + 16, count=count).text
    assert all(value in summary for value in kept), summary


def test_sentences_end_where_they_end():
    text = (
        "Dr. Lee paid 3.50 EUR, e.g. for No. 4. Then she left! 1. Go home. 2. Sleep.\n"
        "- Am 3. Mai kommt Herr A. Berg.\u2028好的。请等。"
    )
    assert list(sentences(text)) == [
        "Dr. Lee paid 3.50 EUR, e.g. for No. 4.",
        "Then she left!",
        "1. Go home.",
        "2. Sleep.",
        "Am 3. Mai kommt Herr A. Berg.",
        "好的。",
        "请等。",
    ]


def test_carriers_are_values_as_written():
    found = carriers(
        "On Friday the 12th of May Ingrid Sørby paid £1,204.50 for LH-716, 5 months late."
    )
    assert found.amounts == ("£1,204.50",)
    assert found.dates == ("Friday", "12th of May")
    assert found.names == ("Ingrid Sørby",)
    assert "LH-716" in found.identifiers
    assert carriers("Nothing here is a value.").values == frozenset()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("किताब", "किताब"),
        ("Zu\u0308rich", "zürich"),
        ("ΑΘΉΝΑ", "Αθηνα"),
        ("Straße", "STRASSE"),
        ("ｶﾒﾗ", "カメラ"),
    ],
)
def test_a_word_has_one_form(one: str, other: str) -> None:
    assert content_words(one) == content_words(other)
    assert content_words("किताब, Ann's cats") == {"किताब", "ann", "cat"}
