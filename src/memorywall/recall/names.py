"""The names and ids by which entries are linked: the edges of a graph of memory.

An entry that states a fact names two things, and the entry that describes a thing names it. Entries
with a common name, and an entry with the entries it was derived from, are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memorywall.expressions.value_index import is_index_row
from memorywall.kinds.spec import ABOUT
from memorywall.recall.analyzer import words_of
from memorywall.records.entry import Entry

_NAMES = ("name", "subject", "object")
"""Fields that name a thing: what an entry describes, and the two ends of a fact."""
_ALIASES = "aliases"
_LONGEST = 80
_MOST = 16
"""The most names of an entry that count."""


def fold_name(name: str) -> str:
    """The form in which names are kept: the words in lower case, so that `GitHub` has one. They are
    compared without accents."""
    return " ".join(words_of(name.lower()))


def aliases_of(value: dict[str, Any]) -> tuple[str, ...]:
    """All names of the thing that a value describes, if it has more than one name."""
    aliases = value.get(_ALIASES)
    if not isinstance(aliases, list):
        return ()
    found = tuple(dict.fromkeys(_fold_names((value.get("name"), *aliases))))[:_MOST]
    return found if len(found) > 1 else ()


def nodes_of(entry: Entry, value: dict[str, Any]) -> tuple[str, ...]:
    """The things that an entry links: names, and ids of other entries.

    People that an entry is about are none, because everything is about them. Neither are the values
    that a namespace declares for its index, such as the state of a ticket.
    """
    linked = (
        target
        for relation, target in entry.edges
        if relation != ABOUT and not is_index_row(relation)
    )
    names = _fold_names(value.get(field) for field in _NAMES)
    return tuple(dict.fromkeys((*names, *aliases_of(value), *linked)))[:_MOST]


def _fold_names(names: Any) -> Iterator[str]:
    for name in names:
        if isinstance(name, str) and len(name) <= _LONGEST and (one := fold_name(name)):
            yield one
