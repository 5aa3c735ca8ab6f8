"""Names as versions before NFC stored them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from memorywall.records import identifiers


@contextmanager
def stored_as_given(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets a store in this process store names as requests give them, and find them in that form
    only."""
    with monkeypatch.context() as older:
        older.setattr(identifiers, "normalize", lambda form, text: text)
        yield


def accept_as_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a store in this process accept what older versions accepted."""
    monkeypatch.setattr(identifiers, "_NEWLY_REFUSED", frozenset())
