"""Texts in several languages: which one it is, and which words are the same."""

from __future__ import annotations

import pytest

from memorywall.recall.analyzer import Analyzer
from memorywall.recall.languages import ENGLISH, LANGUAGES, language_of, stemmer_of
from tests.recall.recall_service import RecallService, agent

pytestmark = pytest.mark.anyio

ADA, BOB = agent("ada"), agent("bob")
TEXTS = {
    "en": "What did Ana decide about the budget for the new office in Berlin?",
    "de": "Die Rechnungen wurden nicht bezahlt, weil das Konto gesperrt war.",
    "es": "La reunión con el equipo de ventas es el martes y no puede moverse.",
    "fr": "Les factures du bureau de Lyon ne sont pas payées.",
    "it": "Le fatture non sono state pagate perché il conto è bloccato.",
    "nl": "De rekeningen zijn niet betaald omdat de rekening geblokkeerd is.",
    "pt": "As faturas não foram pagas porque a conta está bloqueada.",
    "ru": "Счета не были оплачены, потому что она не знала об этом.",  # noqa: RUF001 - Cyrillic
    "sv": "Fakturorna har inte betalats eftersom kontot var spärrat och hon inte visste det.",
}
FORMS = {
    "de": ("Häuser", "Haus"),
    "es": ("reuniones", "reunión"),
    "fr": ("factures", "facture"),
    "it": ("fatture", "fattura"),
    "nl": ("rekeningen", "rekening"),
    "pt": ("faturas", "fatura"),
    "ru": ("счета", "счетами"),
    "sv": ("fakturorna", "fakturor"),
}


def _language(text: str, declared: object = None) -> str:
    return language_of(text.lower().replace(",", "").replace(".", "").split(), declared)


@pytest.mark.parametrize("language", TEXTS)
def test_a_language_is_found_by_its_words(language: str) -> None:
    assert _language(TEXTS[language]) == language


def test_a_text_that_tells_no_language_is_english() -> None:
    for text in ("", "Rechnung", "Hon. Maria de la Cruz", "das ist", "漢字の文章です"):
        assert _language(text) == ENGLISH
    names = "Vincent van Gogh Grace Hopper Alan Turing Charles de Gaulle Ada Lovelace Emmy Noether "
    assert _language(names * 9) == ENGLISH


def test_a_declared_language_takes_precedence_if_it_is_known() -> None:
    assert _language(TEXTS["en"], "de-AT") == "de"
    assert _language(TEXTS["de"], "EN") == ENGLISH
    assert _language(TEXTS["de"], "xx") == "de"
    assert _language(TEXTS["de"], 7) == "de"


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_a_stemmer(language: str) -> None:
    analyzer = Analyzer()
    one, other = (analyzer.of_word(word.lower(), language) for word in FORMS[language])
    assert one == other
    assert stemmer_of(language).stemWord("x") == "x"


def test_english_terms_do_not_depend_on_other_languages() -> None:
    analyzer = Analyzer()
    before = analyzer.of(TEXTS["en"])
    for language in LANGUAGES:
        analyzer.of(TEXTS["en"], language)
    assert analyzer.of(TEXTS["en"]) == before
    assert analyzer.of_word("houses") == analyzer.of_word("house") == "hous"


async def test_other_forms_of_a_word_are_found(recall: RecallService) -> None:
    german = await recall.write(ADA, "Die Häuser sind alle noch nicht verkauft.", namespace="de")
    english = await recall.write(ADA, "The houses are not sold.", namespace="en")
    french = await recall.write(ADA, {"text": "Cafés fermés", "language": "fr"}, namespace="fr")
    assert await recall.ids(ADA, "Haus") == [german.id]
    assert await recall.ids(ADA, "Welches Haus ist das und was kostet es?") == [german.id]
    assert await recall.ids(ADA, "house") == [english.id]
    assert await recall.ids(ADA, "cafe") == [french.id]
    (hit,) = (await recall.search(ADA, "Haus", explain=True)).hits
    assert hit.signals is not None
    assert hit.signals.terms == ("haus",)


async def test_languages_of_what_is_hidden_change_no_score(recall: RecallService) -> None:
    """The German stem of `Banken` is an English word."""
    await recall.write(ADA, "The bank opens at nine.", namespace="shared")

    async def scores() -> list[float]:
        return [hit.score for hit in (await recall.search(ADA, "Banken opens")).hits]

    before = await scores()
    for number in range(5):
        text = f"Die Banken sind am Montag nicht offen, weil das so ist. {number}"
        await recall.write(BOB, text, namespace="hidden")
    assert await scores() == before
