"""Finds the words of a text that it names as known, such as "the refund" and "my invoice". Pure
functions.

Who returns to a matter names it with a definite article or a possessive; who begins another one
names things for the first time, as "a bicycle tour" or "which desk". So a word that a text shares
with a session says more if the text names it as known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from memorywall.records.words import find_words

_DEFINITE = frozenset(
    find_words(
        """
        the my our your his her their its this that these those
        der die das den dem des mein meine meinen meinem meiner meines unser unsere unseren unserem
        unserer dein deine ihr ihre ihren ihrem sein seine dieser diese dieses diesen diesem zum zur
        im vom am beim
        le la les mon ma mes notre nos votre vos son sa ses ce cet cette ces du au aux
        el los las mi mis nuestro nuestra tu su sus este esta estos estas ese esa del al
        il lo gli mio mia miei nostro nostra suo sua questo questa della dello dei delle
        o os as meu minha meus minhas nosso nossa seu sua esse essa do da dos das
        de het mijn ons onze jouw zijn haar deze dit die
        """
    )
)
"""Articles, possessives and demonstratives of languages that have articles."""
_INDEFINITE = frozenset(
    find_words(
        """
        a an any some which what another
        ein eine einen einem einer welche welcher welches welchen kein keine
        un une des quel quelle quels quelles una unos unas qué cuál uno quale um uma qual een welk
        welke
        """
    )
)
_REACH = 3
"""The words before a noun among which its article stands: "the green kitchen paint"."""


def find_known_terms(text: str, terms_of: Callable[[str], Collection[str]]) -> set[str]:
    """Returns the terms of words that a text names as known; all of them for a text without
    articles, which tells nothing about that.

    terms_of: the terms of a text, without stop words
    """
    words = [word.lower() for word in find_words(text)]
    if _DEFINITE.isdisjoint(words) and _INDEFINITE.isdisjoint(words):
        return {*terms_of(text)}
    known = set[str]()
    for place, word in enumerate(words):
        if not _DEFINITE.isdisjoint(words[max(0, place - _REACH) : place]):
            known.update(terms_of(word))
    return known
