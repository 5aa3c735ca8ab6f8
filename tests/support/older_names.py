"""Names as versions before NFC stored them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_AS_GIVEN = {"normalize_name": lambda name: name, "name_forms": lambda name: (name,)}


@contextmanager
def stored_as_given(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets a store in this process store names as requests give them, and find them in that form
    only."""
    with monkeypatch.context() as older:
        for name, module in list(sys.modules.items()):
            if name.startswith("memorywall."):
                for function, replacement in _AS_GIVEN.items():
                    if function in vars(module):
                        older.setattr(module, function, replacement)
        yield
