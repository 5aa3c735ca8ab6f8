"""Namespaces of LangGraph's store, which are tuples of labels, as namespaces of entries."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

from langgraph.store.base import MatchCondition

_RESERVED = frozenset("%/*")
_SEPARATOR = "/"
_KEPT = 4_096
"""The namespaces whose other form is remembered."""
_PERSON = "user/"
"""The beginning of the namespaces of a client for one person, before the id of the person."""


class NamespaceNames(NamedTuple):
    """Names of the namespaces of a store.

    root: the first part of all of them, which separates the items from other entries
    is_bound: whether requests are bound to one person, whose namespaces have a prefix
    """

    root: str
    is_bound: bool

    def encode(self, labels: tuple[str, ...]) -> str:
        """The namespace of entries with these labels."""
        return _encode(self.root, labels)

    def decode(self, namespace: str) -> tuple[str, ...]:
        """The labels of a namespace of entries."""
        return _decode(namespace, self.is_bound)


@lru_cache(_KEPT)
def _encode(root: str, labels: tuple[str, ...]) -> str:
    return _SEPARATOR.join((root, *map(encode_name, labels), ""))


@lru_cache(_KEPT)
def _decode(namespace: str, is_bound: bool) -> tuple[str, ...]:
    if is_bound:
        namespace = namespace.removeprefix(_PERSON).partition(_SEPARATOR)[2]
    return tuple(map(unquote, namespace.split(_SEPARATOR)[1:-1]))


def encode_name(name: str) -> str:
    """Returns a label or a key without the characters that names of entries do not have."""
    is_normal = unicodedata.is_normalized("NFC", name)
    if is_normal and name.isprintable() and name == name.strip() and _RESERVED.isdisjoint(name):
        return name
    last = len(name) - 1
    return "".join(
        quote(character, safe="")
        if character in _RESERVED
        or not character.isprintable()
        or (character == " " and place in (0, last))
        or not (is_normal or character.isascii())
        else character
        for place, character in enumerate(name)
    )


def decode_name(name: str) -> str:
    """Returns the label or key of which this is the name."""
    return unquote(name)


def select_namespaces(
    namespaces: Iterable[tuple[str, ...]],
    conditions: Iterable[MatchCondition],
    max_depth: int | None,
) -> list[tuple[str, ...]]:
    """Returns the namespaces that meet all conditions, cut to a depth, in order and each once."""
    wanted = list(conditions)
    met = {one for one in namespaces if all(_is_met(one, condition) for condition in wanted)}
    return sorted({one[:max_depth] for one in met})


def _is_met(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    is_suffix = condition.match_type == "suffix"
    part = namespace[len(namespace) - len(path) :] if is_suffix else namespace[: len(path)]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
