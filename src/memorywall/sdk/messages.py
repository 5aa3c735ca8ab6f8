"""Messages as the libraries of providers return them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def plain_message(given: Any) -> Any:
    """Returns a message of a provider's library as the dict that it stands for."""
    if isinstance(given, Mapping):
        return {name: plain_message(one) for name, one in given.items()}
    if isinstance(given, list | tuple):
        return [plain_message(one) for one in given]
    dump = getattr(given, "model_dump", None)
    return dump(mode="json") if callable(dump) else given
