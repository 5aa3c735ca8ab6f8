"""Compounds, and the other names of things, count for the words of a query."""

from __future__ import annotations

import pytest

from memorywall.recall.compounds import Vocabulary, parts_of
from memorywall.records.recall import Signals
from memorywall.records.tier import Tier
from tests.recall.recall_service import RecallService, agent

pytestmark = pytest.mark.anyio

ANN, BOB = agent("ann"), agent("bob")


async def _write(recall: RecallService, **texts: str) -> None:
    for key, text in texts.items():
        value = {"text": text, "language": "de" if key.startswith("de_") else "en"}
        await recall.write(ANN, value, key=key, scope={"session_id": key})


async def _keys(recall: RecallService, query: str) -> list[str]:
    return [hit.entry.key for hit in (await recall.search(ANN, query)).hits]


async def _signals(recall: RecallService, query: str, key: str) -> Signals:
    page = await recall.search(ANN, query, explain=True)
    signals = next(hit.signals for hit in page.hits if hit.entry.key == key)
    assert signals is not None
    return signals


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("health care plan", "the plan of our healthcare"),
        ("timezone", "a zone at any time"),
        ("Wartungsvertrag", "Der Vertrag f\u00fcr die Wartung endet."),
        ("Ventil", "Das Thermostatventil klemmt."),
        ("Ventile", "Das Thermostatventil klemmt."),
        ("der Termin der Lieferung", "Der Liefertermin steht fest."),
    ],
)
async def test_a_compound_counts_for_its_parts(
    recall: RecallService, query: str, text: str
) -> None:
    german = "de_" if text[0] == "D" else ""
    await _write(recall, **{f"{german}wanted": text, f"{german}other": "etwas ganz anderes"})
    assert await _keys(recall, query) == [f"{german}wanted"]


async def test_the_word_itself_stands_before_a_compound(recall: RecallService) -> None:
    await _write(
        recall,
        de_compound="Das Thermostatventil klemmt heute.",
        de_word="Das kleine Ventil klemmt heute.",
    )
    assert await _keys(recall, "Ventil") == ["de_word", "de_compound"]


async def test_the_end_of_an_english_word_is_no_compound(recall: RecallService) -> None:
    await _write(recall, first="the grandmother sleeps", second="a mother of two")
    assert await _keys(recall, "mother") == ["second"]


async def test_two_numbers_are_no_compound(recall: RecallService) -> None:
    await _write(recall, first="room 12", second="the covid19 test")
    assert await _keys(recall, "1 2") == []
    assert await _keys(recall, "covid 19") == ["second"]


def test_the_longest_last_part_counts() -> None:
    def parts(word: str, *known: str) -> list[str]:
        return list(parts_of(word, lambda one: one, known.count))

    doors = ("haus", "schlussel", "turschlussel")
    assert parts("hausturschlussel", *doors) == ["haus", "turschlussel"]
    assert parts("wartungsvertrag", "wartung", "vertrag") == ["wartung", "vertrag"]
    assert parts("turschlussel", *doors) == []


def test_a_vocabulary_follows_its_terms() -> None:
    terms: dict[str, object] = {"ventil": 0, "dachventil": 0}
    vocabulary = Vocabulary(terms)
    assert list(vocabulary.ending_with("ventil")) == ["dachventil"]
    terms["thermostatventil"] = 0
    terms["ventilator"] = 0
    assert list(vocabulary.ending_with("ventil")) == ["dachventil", "thermostatventil"]
    assert list(vocabulary.ending_with("til")) == []


async def test_another_name_of_a_thing_counts(recall: RecallService) -> None:
    await recall.write(
        ANN, {"name": "Kestrel", "aliases": ["billing rewrite", "BR2"]}, Tier.SEMANTIC, key="names"
    )
    await recall.write(ANN, "Kestrel goes live in May", Tier.SEMANTIC, key="wanted")
    await recall.write(ANN, "the rewrite of the parser", Tier.SEMANTIC, key="other")
    assert await _keys(recall, "when is BR2 live?") == ["wanted", "names", "other"]
    assert (await _signals(recall, "BR2", "wanted")).terms == ("kestrel",)
    assert "wanted" in await _keys(recall, "the date of the billing rewrite")


async def test_a_name_that_may_not_be_read_has_no_effect(recall: RecallService) -> None:
    names = {"name": "Kestrel", "aliases": ["BR2"]}
    await recall.write(BOB, names, key="names")
    await recall.write(ANN, "Kestrel goes live in May", key="wanted")
    assert await _keys(recall, "BR2") == []
    own = await recall.write(ANN, names, key="own")
    assert set(await _keys(recall, "BR2")) == {"own", "wanted"}
    await recall.remove(ANN, own)
    assert await _keys(recall, "BR2") == []


@pytest.mark.parametrize("aliases", ["BR2", [], [1, None], ["Kestrel"]])
async def test_values_without_other_names_are_found_as_before(
    recall: RecallService, aliases: object
) -> None:
    await recall.write(ANN, {"name": "Kestrel", "aliases": aliases}, key="names")
    assert await _keys(recall, "kestrel") == ["names"]


@pytest.mark.parametrize("query", ["github", "GitHub", "GITHUB", "what is github?"])
async def test_case_does_not_count_in_a_name(recall: RecallService, query: str) -> None:
    await recall.write(ANN, {"name": "GitHub", "aliases": ["octocat"]}, Tier.SEMANTIC, key="names")
    await recall.write(ANN, "the octocat waves", Tier.SEMANTIC, key="wanted")
    assert "wanted" in await _keys(recall, query)


async def test_the_other_names_that_most_entries_give_count(recall: RecallService) -> None:
    """Which of many count depends neither on the order of changes nor on what is loaded anew."""
    # Those that most give, then those that stand first.
    many = [f"name{digit}" for digit in "9876543210"]
    await recall.write(ANN, {"name": "Kestrel", "aliases": many}, Tier.SEMANTIC, key="many")
    value = {"name": "Kestrel", "aliases": ["name9", "BR2"]}
    few = await recall.write(ANN, value, Tier.SEMANTIC, key="few")
    await recall.ids(ANN, "kestrel")
    await recall.change(ANN, few, tags=["t"])
    expected = ["kestrel", "name9", "br2", *(f"name{digit}" for digit in "876543")]
    fresh = recall.anew()
    for one in (recall, fresh):
        assert set((await _signals(one, "Kestrel", "many")).terms) == {*expected} - {"br2"}
        assert set((await _signals(one, "Kestrel", "few")).terms) == {"kestrel", "name9", "br2"}
    fresh.close()


async def test_a_name_that_many_entries_have_has_no_other_names(recall: RecallService) -> None:
    async def is_named() -> bool:
        page = await recall.search(ANN, "user", limit=100, explain=True)
        signals = {hit.entry.key: hit.signals for hit in page.hits}["wanted"]
        return signals is not None and "a0" in signals.terms

    await recall.open_namespace(BOB, "closed", "none")
    await recall.write(ANN, "the flat a0", Tier.SEMANTIC, key="wanted")
    for number in range(50):
        value = {"name": "user", "aliases": [f"a{number}"]}
        await recall.write(ANN, value, Tier.SEMANTIC, key=f"k{number}")
        await recall.write(BOB, value, Tier.SEMANTIC, "closed", key=f"hidden-{number}")
    assert await is_named()
    more = await recall.write(ANN, {"name": "user", "aliases": ["a0"]}, Tier.SEMANTIC)
    assert not await is_named()
    await recall.remove(ANN, more)
    assert await is_named()


async def test_only_sixteen_names_of_an_entry_count(recall: RecallService) -> None:
    names = {"name": "Kestrel", "aliases": [f"b{number}" for number in range(16)]}
    await recall.write(ANN, names, Tier.SEMANTIC, key="names")
    await recall.write(ANN, "Kestrel goes live", Tier.SEMANTIC, key="wanted")
    assert "wanted" in await _keys(recall, "b14")
    assert "kestrel" in (await _signals(recall, "b14", "wanted")).terms
    assert "kestrel" not in (await _signals(recall, "b15 live", "wanted")).terms


async def test_terms_contain_words_of_the_label_and_of_neighbours(recall: RecallService) -> None:
    for key, text in (("before", "a harbour"), ("kiln-1", "at night"), ("after", "a ladder")):
        await recall.write(ANN, text, key=key, scope={"session_id": "one"})
    asked = "the kiln at the harbour with a ladder at night, or a window"
    found = await _signals(recall, asked, "kiln-1")
    assert found.terms == ("kiln", "harbour", "ladder", "night")
    assert (await _signals(recall, asked, "before")).terms == ("harbour", "night")


async def test_a_correction_has_the_rarity_of_the_corrected_word(recall: RecallService) -> None:
    for number in range(10):
        await recall.write(ANN, "the kitten", Tier.SEMANTIC, key=f"kitten-{number}")
    await recall.write(ANN, "the window", Tier.SEMANTIC, key="window")
    right = await _signals(recall, "kitten window", "kitten-0")
    wrong = await _signals(recall, "kittem window", "kitten-0")
    assert wrong.terms == ("kitten",)
    assert wrong.lexical == pytest.approx(0.7 * right.lexical, rel=0.02)


async def test_a_variant_that_the_query_contains_counts_once(recall: RecallService) -> None:
    await recall.write(ANN, "health", Tier.SEMANTIC, key="first")
    await recall.write(ANN, "care", Tier.SEMANTIC, key="second")
    await recall.write(ANN, "healthcare", Tier.SEMANTIC, key="whole")
    asked = "healthcare health care"
    shares = {key: (await _signals(recall, asked, key)).lexical for key in ("first", "whole")}
    assert shares["first"] == pytest.approx(shares["whole"])
