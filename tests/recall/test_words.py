"""The words of texts: identifiers, quantities, scripts without spaces, and typing errors."""

from __future__ import annotations

import pytest

from memorywall.recall.analyzer import one_edit_away, words_of
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
