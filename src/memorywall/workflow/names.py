"""Checks of names in a workflow file; they accept the names that the server accepts.

A check returns the problem of a name without repeating it, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from memorywall.records.identifiers import (
    LONGEST_AGENT,
    LONGEST_KEY,
    LONGEST_NAME,
    LONGEST_TAG,
    is_clean,
)

Check = Callable[[str], str | None]

_RESERVED = "shared/"
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def _clean(longest: int, without: str = "") -> Check:
    def check(text: str) -> str | None:
        if not is_clean(text, longest):
            return f"must have 1 to {longest} printable characters and no space at either end"
        if without and without in text:
            return f"must not contain `{without}`"
        return None

    return check


name = _clean(LONGEST_NAME)
agent = _clean(LONGEST_AGENT, "/")
key = _clean(LONGEST_KEY)
tag = _clean(LONGEST_TAG, ",")
_namespace = _clean(LONGEST_NAME, "*")


def namespace(text: str) -> str | None:
    """Checks a namespace that is no scope of shared state."""
    if text.startswith(_RESERVED):
        return f"must not begin with `{_RESERVED}`, which is reserved for shared state"
    return _namespace(text)


def function(text: str) -> str | None:
    """Checks the name of a function in a module."""
    if _FUNCTION.fullmatch(text) is None:
        return "must be `module:name`, such as `my_package.billing:work`"
    return None
