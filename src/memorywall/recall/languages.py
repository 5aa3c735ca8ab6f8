"""The language of a text, as far as it changes how its words are compared.

A language is found by its most frequent words. A text in none of these languages, or in too few
words to tell, is treated as English.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Protocol

ENGLISH = "en"
_NAMES = {
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
}
"""The languages with a stemmer besides English, by ISO 639-1, and the names of their stemmers."""
LANGUAGES = tuple(_NAMES)
"""The languages besides English."""
_FUNCTION_WORDS = {
    "en": """
        the a an and or but of to in on at for from with by is are was were be been have has had
        do does did not this that these it its he she they we you i my your his her our their as
        if will would can what which who when where how
    """,
    "de": """
        der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine
        ist sind war waren sein hat haben hatte wird werden wurde ich du er sie es wir ihr mein
        meine dein sich mit von vom zu zum zur bei beim für auf aus nach über unter an am im als
        auch noch wie was wer wo wann wenn dass weil nur schon sehr kann muss
    """,
    "es": """
        el la los las un una unos unas de del y o pero no es son era fue ser estar está están ha
        han había que en con por para sin sobre su sus mi mis tu lo le les se me te nos como más
        muy ya cuando donde quién qué cuál este esta esto ese esa al también porque si
    """,
    "fr": """
        le la les un une des du de et ou mais ne pas est sont était être a ont avait que qui en
        dans avec par pour sans sur son sa ses mon ma mes ton ta ce cet cette ces il elle ils
        elles nous vous je tu se au aux comme plus très quand où aussi parce si dont leur leurs
    """,
    "it": """
        il lo la i gli le un uno una di del della dei delle e o ma non è sono era essere ha
        hanno aveva che in con per senza su suo sua mio mia tuo si mi ti ci come più molto già
        quando dove chi cosa questo questa quello al alla nel nella dal anche perché se
    """,
    "nl": """
        de het een en of maar niet geen is zijn was waren wordt worden heeft hebben had ik jij
        je hij zij ze we wij mijn jouw zich met van voor op uit naar over onder aan in als ook
        nog hoe wat wie waar wanneer dat die dit deze omdat maar zeer kan moet er bij te
    """,
    "pt": """
        o a os as um uma uns umas de do da dos das e ou mas não é são era foi ser estar está
        estão tem têm havia que em no na nos nas com por para sem sobre seu sua seus meu minha
        se me lhe como mais muito já quando onde quem qual este esta isso ao à também porque
    """,
    "ru": """
        и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только
        ее мне было вот от меня еще нет о из ему теперь когда даже ну ли если уже или ни быть
        был него до вас вам для мы это эта этот они их чем была
    """,  # noqa: RUF001 - Cyrillic
    "sv": """
        och det att i en jag hon som han på den med var sig för så till är men ett om hade de av
        icke mig du henne då sin nu har inte hans honom skulle hennes där min man ej vid kunde
        något från ut när efter upp vi dem vara vad över än dig kan sina här ha mot alla under
        någon eller
    """,
}
_SETS = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
_ENGLISH_TOO = {
    *("all", "am", "an", "as", "come", "die", "god", "her", "him", "man", "me", "min", "more"),
    *("no", "non", "or", "over", "so", "under"),
}
"""Words in the lists of other languages that are also frequent in English."""
_FOREIGN = frozenset().union(*_SETS.values()) - _SETS["en"] - _ENGLISH_TOO
_LEAST = 3
"""The least different function words of a language that is not English."""
_AHEAD = 1.3
"""The least ratio of their number to that of any other language."""
_LEAST_SHARE = 0.12
"""The least share of them in all words, which is about a third in sentences and less in names."""


class Stemmer(Protocol):
    """Reduces words of a language to stems."""

    def stemWord(self, word: str) -> str:
        """The stem of a word in lower case."""
        ...


def language_of(words: Sequence[str], declared: object = None) -> str:
    """The language of a text, by ISO 639-1.

    words: its words in lower case
    declared: the language that the writer names, such as `de` or `de-AT`; it counts if it is known
    """
    if isinstance(declared, str):
        code = declared.lower().replace("_", "-").partition("-")[0]
        if code in _SETS:
            return code
    if _FOREIGN.isdisjoint(words):
        # Most texts in English are recognized by this alone.
        return ENGLISH
    counts = {language: sum(map(known.__contains__, words)) for language, known in _SETS.items()}
    first, second = sorted(counts, key=lambda one: -counts[one])[:2]
    is_clear = counts[first] >= max(_AHEAD * counts[second], _LEAST_SHARE * len(words))
    is_clear = is_clear and len(_SETS[first].intersection(words)) >= _LEAST
    return first if is_clear else ENGLISH


def stopwords_of(language: str) -> Collection[str]:
    """The words of a language that are in texts about anything."""
    return _SETS[language]


@cache
def stemmer_of(language: str) -> Stemmer:
    """The stemmer of a language that is not English."""
    # Texts in English need none.
    import snowballstemmer

    stemmer: Stemmer = snowballstemmer.stemmer(_NAMES[language])
    return stemmer
