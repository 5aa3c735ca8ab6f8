"""The words of texts: identifiers, quantities, scripts and their signs, numbers, stop words, and
typing errors."""

from __future__ import annotations

import pytest

from memorywall.recall.analyzer import Analyzer, long_words_of, one_edit_away, words_of
from memorywall.records.principal import Principal
from tests.recall.recall_service import RecallService, agent

pytestmark = pytest.mark.anyio

ANN, BOB = agent("ann"), agent("bob")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A plain text", "a plain text"),
        ("getUserName", "getusername get user name"),
        ("parse_HTTPServer", "parse httpserver http server"),
        ("src/api/user_service.py", "src api user service py"),
        ("userId iPhone PDFs", "userid user iphone phone pdfs"),
        ("5kg on the 13th, mp3", "5kg 5 kg on the 13th 13 th mp3"),
        ("Straße é", "straße é"),
        ("我喜欢 tea", "我喜 喜欢 tea"),
        ("手 iPhone手机", "手 iphone phone 手机"),
        ("मेरी किताब", "मेरी किताब"),
        (
            "Zu\u0308rich \uff21\uff22\uff23\uff11\uff12\uff13 oﬃce ｶﾒﾗ",
            "zürich abc123 office カメ メラ",
        ),
        ("soft\u00adly Foo™ 5㎏ 1\ufe0f\u20e3 col·lecció", "softly foo tm 5 kg 1 collecció"),
        ("می\u200cخواهم צה״ל ٤٬٠٠٠", "میخواهم צהל 4000"),  # noqa: RUF001
        ("4,000.50; 4.000; 4'000; 4\u202f000; 1,00,000", "4000 50 4000 4000 4000 100000"),
        ("4 000 on 10.100.200.1", "4 000 on 10 100 200 1 4000 101002001"),
        ("on 2026-08-12 1 2 3 4 5 6 7 8", "on 2026 08 12 1 2 3 4 5 6 7 8"),
        ("+43 (0)1 234-56", "43 0 1 234 56 430123456"),
        ("de89 3704 0044 0532 0130 00 to", "de89 3704 0044 0532 0130 00 to de89370400440532013000"),
        ("GB82 WEST 1234 5678", "gb82 west 1234 5678 gb82west12345678"),
    ],
)
def test_a_text_has_these_words(text: str, expected: str) -> None:
    assert words_of(text) == expected.split()


def test_one_edit_reaches_each_kind_of_typing_error() -> None:
    others = set(one_edit_away("kittn"))
    assert {"kitten", "kitt", "mittn", "kitnt", "ikttn"} <= others
    assert "kitchen" not in others
    for term in ("tree", "12345", "köln1"):
        assert not list(one_edit_away(term))


async def _keys(recall: RecallService, query: str, who: Principal = ANN) -> list[str]:
    return [hit.entry.key for hit in (await recall.search(who, query)).hits]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("how does one read the user name", "def getUserName(self): ..."),
        ("getUserName", "the call of getUserName fails"),
        ("a bag of 5 kg", "the sack weighs 5kg"),
        ("苹果", "我喜欢吃苹果"),
        ("किताब", "मेरी किताब मेज पर है"),
        ("जरूरत", "मुझे ज़रूरत है"),
        ("u\u0308bersicht", "Das Büro schickt die Übersicht"),
        ("ιστορια", "Ιστορία της Αθήνας"),
        ("\u039f\u0394\u039f\u03a3", "η οδός είναι κλειστή"),
        ("елка", "новогодняя ёлка"),
        ("شكرا", "شُكْراً"),
        ("שלום", "שָׁלוֹם"),
        ("Strasse", "Die Straße ist gesperrt"),
        ("STRAẞE", "die strasse"),
        ("lodz orsted", "Łódź, Ørsted"),
        ("istanbul", "İSTANBUL"),
        ("ABC123", "型番は\uff21\uff22\uff23\uff11\uff12\uff13です"),
        ("猫", "我有一只猫"),
        ("집", "집에 갔다"),
        ("แมว", "ฉันมีแมวสองตัว"),
        ("4000", "the budget is 4,000 euros"),
        ("4.000", "le budget est 4\u00a0000 euros"),
        ("DE89370400440532013000", "to DE89 3704 0044 0532 0130 00 today"),
        ("+43 1 234 56 78", "call +4312345678"),
        ("(030) 1234567", "030/1234567"),
        ("to be or not to be", "To be, or not to be"),
        ("kittn", "the kitten sleeps"),
        ("kiten", "the kitten sleeps"),
    ],
)
async def test_a_query_finds_a_text(recall: RecallService, query: str, text: str) -> None:
    await recall.write(ANN, text, key="wanted", scope={"session_id": "one"})
    await recall.write(ANN, "something else entirely", key="other", scope={"session_id": "two"})
    assert await _keys(recall, query) == ["wanted"]


async def test_a_word_that_is_in_a_text_is_not_corrected(recall: RecallService) -> None:
    for key, text in (("a", "a mitten"), ("b", "a kitten"), ("c", "one more kitten")):
        await recall.write(ANN, text, key=key, scope={"session_id": key})
    assert await _keys(recall, "mitten") == ["a"]
    # "bitten" is in no text, and "kitten" is in more texts than "mitten".
    assert set(await _keys(recall, "bitten")) == {"b", "c"}


async def test_a_text_that_may_not_be_read_corrects_nothing(recall: RecallService) -> None:
    await recall.write(BOB, "the kitten sleeps")
    await recall.write(ANN, "a mitten")
    assert len(await _keys(recall, "kittn")) == 0
    assert len(await _keys(recall, "mittn")) == 1


async def test_a_counter_in_a_key_is_no_word(recall: RecallService) -> None:
    await recall.write(ANN, "the first day", key="turn-13")
    await recall.write(ANN, "a bill", key="invoice-4711")
    assert await _keys(recall, "13") == []
    assert await _keys(recall, "4711") == ["invoice-4711"]


@pytest.mark.parametrize(
    ("query", "wanted", "other"),
    [
        ("The Who", "The Who played at Leeds.", "Who took the car? The man who knows."),
        ("IT", "IT moved to building four.", "It was late. Take it."),
        ("WHO", "A plan of the WHO", "Who does what in it"),
        ("Who are The Who?", "I like The Who.", "Who are you?"),
        ("vitamin A", "She takes vitamin A at noon.", "A vitamin C pill is a must."),
        ("vitamin d", "Vitamin D is good.", "Vitamin C is good, and I'd take it."),
        ("the IT budget", "The budget of IT", "The budget, and it is large"),
        ("C", "He writes C.", "He writes Java."),
    ],
)
async def test_a_name_that_is_a_stop_word_is_found(
    recall: RecallService, query: str, wanted: str, other: str
) -> None:
    await recall.write(ANN, other, key="other", scope={"session_id": "two"})
    await recall.write(ANN, wanted, key="wanted", scope={"session_id": "one"})
    assert (await _keys(recall, query))[:1] == ["wanted"]


async def test_stop_words_beside_other_words_find_nothing(recall: RecallService) -> None:
    await recall.write(ANN, "The man who was there did it.", key="other", namespace="other")
    assert await _keys(recall, "What does the kitten do there?") == []
    assert await _keys(recall, "Who was it?") == []
    await recall.write(ANN, "Die Katze und das Haus sind nicht da.", key="german")
    assert await _keys(recall, "Die") == ["german"]
    assert await _keys(recall, "die dog") == []


@pytest.mark.parametrize("query", ["🚀", "?", "..."])
async def test_a_query_without_a_word_is_none(recall: RecallService, query: str) -> None:
    await recall.write(ANN, "The launch was 🚀 today.")
    assert await _keys(recall, query) == []


async def test_a_name_is_found_in_any_form(recall: RecallService) -> None:
    for key, author in (("jose", "Jose\u0301"), ("neha", "नेहा"), ("other", "Bo")):
        await recall.write(ANN, {"text": "I like tea", "author": author}, key=key, namespace=key)
    for query, key in (("What does José like?", "jose"), ("What does नेहा like?", "neha")):
        assert (await _keys(recall, query))[0] == key
    names = {"name": "Łódź", "aliases": ["Lodsch"]}
    await recall.write(ANN, names, key="names", namespace="names")
    await recall.write(ANN, "Lodsch has trams", key="trams", namespace="trams")
    assert set(await _keys(recall, "Lodz")) == {"names", "trams"}


async def test_the_passage_with_an_accent_is_shown_as_stored(recall: RecallService) -> None:
    text = "The first line. " * 60 + "Le re\u0301sume\u0301 est la\u0300. " + "The last line. " * 60
    await recall.write(ANN, text)
    (hit,) = (await recall.search(ANN, "résumé")).hits
    assert hit.highlight is not None
    assert "re\u0301sume\u0301" in hit.highlight.text
    assert text[hit.highlight.start : hit.highlight.end] == hit.highlight.text


def test_words_that_say_little_are_short_in_scripts_with_spaces() -> None:
    assert long_words_of("Is the Café at 猫カフェ?") == {"the", "cafe", "猫カ", "カフ", "フェ"}


def test_stop_words_have_terms_in_documents_only() -> None:
    analyzer = Analyzer()
    assert analyzer.of("The WHO warns") == (["warn"], 3)
    assert analyzer.of_document("The WHO warns") == ([".the", ".who", "warn", "WHO"], 3)
    assert analyzer.of_document("一只猫")[0] == ["一只", "只猫", "一", "只", "猫"]
