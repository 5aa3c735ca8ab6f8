"""Names of arguments: earlier names that stay valid, and what an unknown name probably means.

Options, query parameters, fields of bodies and keyword arguments are refused in one sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from itertools import islice
from typing import Final, TypeVar

from memorywall.records.errors import RequestError

Given = TypeVar("Given")

EARLIER: Final[Mapping[str, tuple[str, ...]]] = {
    "subject": ("about", "user"),
    "subjects": ("users",),
}
"""Earlier names of arguments, and the present ones. The first one that is an argument is meant."""

_MEANT = {
    "filter": ("where",), "filters": ("where",), "id": ("entry_id", "session_id"),
    "k": ("limit",), "message": ("text", "user"), "n": ("limit",), "n_results": ("limit",),
    "name": ("key",), "page_size": ("limit",), "person": ("user",), "q": ("query", "question"),
    "query": ("question", "text"), "role_id": ("agent_id",), "since": ("created_after",),
    "tier": ("memory_type", "type"), "top_k": ("limit",),
    "type": ("memory_type",), "user_id": ("user",), "until": ("created_before",),
    "user": ("about",), "person_id": ("user",), "users": ("user",),
}  # fmt: skip
"""Names of other tools, and the names of ours that mean the same."""
_MOST_NAMED = 20
_LONGEST_NAME = 64
_LIKENESS = 0.6
_LIKENESS_AT_OTHER_BEGIN = 0.75
"""The least ratio of the characters of two names that are alike, and of two that begin with
different characters. With one ratio `sessions` would be suggested for `version`."""


def nearest_name(name: str, known: Iterable[str], likeness: float = _LIKENESS) -> str | None:
    """Returns the known name that an unknown one probably means, None if none is like it.

    likeness: the least ratio of equal characters; default: .6
    """
    names = tuple(known)
    same = (*EARLIER.get(name, ()), *_MEANT.get(name, ()))
    meant = next((one for one in same if one in names), None)
    if meant is not None or len(name) > _LONGEST_NAME:
        return meant
    # Nobody waits for its import whose names are all known.
    from difflib import get_close_matches

    first = [one for one in names if one[:1] == name[:1]]
    alike = get_close_matches(name, first, 1, likeness)
    return next(iter(alike or get_close_matches(name, names, 1, _LIKENESS_AT_OTHER_BEGIN)), None)


def unknown_names(what: str, unknown: Collection[str], known: Iterable[str]) -> str:
    """Returns the sentence that refuses unknown names, which suggests the nearest known ones.

    what: what has the names, in the plural, such as "options"
    unknown: at most 20 of them are named. A path such as `entries[0].ttl` is compared by its end
    """
    names = tuple(known)
    return refuse_names(what, {one: nearest_name(one.rpartition(".")[2], names) for one in unknown})


def refuse_names(what: str, meant: Mapping[str, str | None]) -> str:
    """Returns the sentence of `unknown_names`.

    meant: the unknown names, each with the known one that it probably means, or None
    """
    shown = [
        f"`{name[:_LONGEST_NAME]}`" + ("" if nearest is None else f" (do you mean `{nearest}`?)")
        for name, nearest in islice(meant.items(), _MOST_NAMED)
    ]
    return f"unknown {what}: {', '.join(shown)}"


def current_names(given: Mapping[str, Given], known: Set[str]) -> dict[str, Given] | None:
    """Returns arguments with the present names in place of earlier ones; None if none has an
    earlier name.

    Raises RequestError for an argument that is given by both names with different values.
    """
    renamed = {
        earlier: next(name for name in names if name in known)
        for earlier, names in EARLIER.items()
        if earlier in given and earlier not in known and not set(names).isdisjoint(known)
    }
    if not renamed:
        return None
    for earlier, present in renamed.items():
        if present in given and given[present] != given[earlier]:
            raise RequestError(
                f"`{present}` and `{earlier}` name the same and differ; send one of them"
            )
    return {renamed.get(name, name): value for name, value in given.items()}
