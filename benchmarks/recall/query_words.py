"""Texts and questions of invented conversations, for measuring speed.

Words are drawn as often as words of a language are: few very often, most hardly ever. Everything is
drawn from seeded generators, so two runs send the same requests.
"""

from __future__ import annotations

from bisect import bisect
from datetime import datetime, timedelta
from itertools import accumulate, product
from random import Random
from typing import Any

TURNS_PER_SESSION = 20
_SEED = 15
_VOCABULARY = 20_000
_FLATNESS = 20
"""Zipf's law as Mandelbrot bent it: the commonest words are not that common."""
_SHORTEST, _LONGEST = 8, 40
_GLUE_SHARE = 0.5
_QUESTION_SHARE = 0.2
_BEGUN = datetime(2025, 1, 6, 9)  # noqa: DTZ001 - nobody's clock
_AUTHORS = ("Ada", "Bruno", "Chiara", "Dmitri", "Esra", "Farid")
_MONTHS = ("January", "March", "April", "June", "September", "October", "December")
_GLUE = """
    the a to and of in i you it that is was for on with my we they at so but be this have as not
    are me just what all there do had your when about can from if out then he she his her or them
"""
_CONTENT = """
    time day week thing work good new home friend great year last think know want look make come
    see feel help plan nice family start talk try place people morning evening book garden river
    train kitchen dinner lunch coffee tea bread cheese apple market bridge window door table chair
    phone letter paper pencil picture camera music song guitar piano violin concert dance theatre
    movie museum gallery paint brush color blue green yellow red white black brown silver gold
    summer winter spring autumn rain snow wind storm cloud sun moon star sky sea beach island boat
    harbor mountain valley forest tree leaf flower rose grass field farm horse cow sheep dog cat
    bird fish school teacher student lesson exam class office meeting project report budget client
    contract invoice payment order delivery package shop price ticket flight airport hotel journey
    visit trip map road street car bus bicycle wheel engine repair tool hammer nail wood stone
    glass metal wall roof floor room house tower castle church village town city country doctor
    nurse hospital medicine health sleep dream run walk swim climb jump throw catch carry lift push
    pull open close break build cook bake clean wash dry cut draw write read listen speak answer
    question problem idea reason answer story secret promise gift birthday party wedding holiday
    present surprise laugh smile cry worry hope fear love hate trust doubt believe remember forget
    learn teach practice study finish begin wait stay leave arrive return lose find keep give take
    buy sell pay save spend borrow lend share choose decide agree argue fight win team game match
    score ball player coach race record medal news paper radio program computer screen keyboard
    server network message email password file folder backup update error test release version
    customer support meeting schedule deadline manager colleague salary job interview company
    neighbor cousin uncle aunt brother sister mother father daughter son baby child grandmother
"""
_ENDINGS = ("", "s", "ing", "ed", "er")
_ONSETS = ("b", "br", "d", "dr", "f", "fl", "g", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v")
_RHYMES = ("a", "an", "e", "el", "i", "in", "o", "or", "u", "um")


class Talk:
    """The turns of a long conversation, and questions about it.

    number: of the conversation; another number gives other texts of the same kind
    """

    def __init__(self, number: int = 0) -> None:
        self._chance = Random(f"{_SEED}-{number}")
        self._words, self._bounds = _vocabulary()
        self._glue = _GLUE.split()
        self._made = 0

    def entry(self) -> dict[str, Any]:
        """The body of the next create: a turn of a session, with its author and its date."""
        turn = self._made
        self._made = turn + 1
        session, place = divmod(turn, TURNS_PER_SESSION)
        return {
            "namespace": "talk",
            "key": f"D{session + 1}:{place + 1}",
            "value": {
                "text": self.text(),
                "author": _AUTHORS[(session + place % 2) % len(_AUTHORS)],
                "date": (_BEGUN + timedelta(hours=7 * session, minutes=place)).isoformat(),
            },
            "memory_type": "session",
            "scope": {"session_id": f"session-{session + 1}"},
        }

    def text(self) -> str:
        """Something somebody says."""
        chance = self._chance
        words = [
            chance.choice(self._glue) if chance.random() < _GLUE_SHARE else self._word()
            for _ in range(chance.randint(_SHORTEST, _LONGEST))
        ]
        end = "?" if chance.random() < _QUESTION_SHARE else "."
        return " ".join(words).capitalize() + end

    def question(self) -> str:
        """Something somebody wants to know; in every third a month is named."""
        chance, word = self._chance, self._word
        author = chance.choice(_AUTHORS)
        return chance.choice(
            (
                f"What did {author} say about the {word()} and the {word()}?",
                f"When did {author} {word()} a {word()} with the {word()}?",
                f"Which {word()} did they {word()} in {chance.choice(_MONTHS)}?",
            )
        )

    def _word(self) -> str:
        return self._words[bisect(self._bounds, self._chance.random() * self._bounds[-1])]


def _vocabulary() -> tuple[list[str], list[float]]:
    """Words, commonest first, and how often each occurs, added up."""
    stems = list(dict.fromkeys(_CONTENT.split()))
    words = [stem + ending for ending in _ENDINGS for stem in stems]
    syllables = ["".join(pair) for pair in product(_ONSETS, _RHYMES)]
    invented = ("".join(pair) for pair in product(syllables, syllables))
    words = list(dict.fromkeys((*words, *invented)))[:_VOCABULARY]
    return words, list(accumulate(1 / (rank + _FLATNESS) for rank in range(1, len(words) + 1)))
