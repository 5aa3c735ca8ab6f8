"""Which texts say the same, and which the opposite."""

from __future__ import annotations

import pytest

from memorywall.longterm.statements import contradicts, read_statement, says_same
from memorywall.recall.analyzer import Analyzer

_ANALYZER = Analyzer()

_OPPOSITES = {
    "English": ("Ann likes green tea.", "Ann no longer likes green tea."),
    "contraction": ("The job does run on Fridays.", "The job doesn't run on Fridays."),
    "German": ("Der Server läuft in Graz.", "Der Server läuft nicht mehr in Graz."),
    "French": ("Anne boit le café.", "Anne ne boit plus le café."),
    "Chinese": ("安娜早上喜欢喝绿茶。", "安娜早上不喜欢喝绿茶。"),
    "Russian": ("Анна любит зелёный чай.", "Анна больше не любит зелёный чай."),
    "Arabic": ("آنا تشرب القهوة صباحا.", "آنا لا تشرب القهوة صباحا."),
}
_OTHERS = {
    "figure": (
        "The port of the metrics server is 9100.",
        "The port of the metrics server is 9200.",
    ),
    "date": ("The audit begins on 2026-03-01.", "The audit begins on 2026-04-01."),
    "name": ("Ann leads the search team.", "Bob leads the search team."),
}
_SAME = {
    "form": ("- **Ann likes green tea.**", "Ann likes green tea!"),
    "order": ("Green tea is what Ann likes.", "Ann likes green tea; that is what is known."),
}


def _both(pair: tuple[str, str], *, is_near: bool = False) -> tuple[bool, bool]:
    """Whether the first says the same as the second, and whether it contradicts it."""
    new, old = (read_statement(one, _ANALYZER) for one in pair)
    return says_same(new, old, is_near=is_near), contradicts(new, old)


@pytest.mark.parametrize("name", _OPPOSITES)
def test_opposites_contradict_each_other_and_are_never_the_same(name: str) -> None:
    pair = _OPPOSITES[name]
    for given in (pair, pair[::-1]):
        assert _both(given) == (False, True)
        # A model finds opposites similar, which changes nothing.
        assert _both(given, is_near=True) == (False, True)


@pytest.mark.parametrize("name", _OTHERS)
def test_another_figure_or_name_is_neither_the_same_nor_the_opposite(name: str) -> None:
    assert _both(_OTHERS[name], is_near=True) == (False, False)


@pytest.mark.parametrize("name", _SAME)
def test_the_same_words_in_another_form_say_the_same(name: str) -> None:
    assert _both(_SAME[name]) == (True, False)


def test_what_says_more_is_not_the_same_without_a_model() -> None:
    longer = "Ann likes green tea, and Bob brews it with care at noon."
    assert _both((longer, "Ann likes green tea.")) == (False, False)
    assert _both(("Ann likes green tea.", longer)) == (True, False)
