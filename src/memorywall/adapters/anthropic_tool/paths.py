"""Paths of memory files. A model writes them, and may have read them in what others have written.

Files are entries, so that no path leads out of memory. What looks as if it should do so is refused
all the same: another reader of the names might follow it.
"""

from __future__ import annotations

import unicodedata
from urllib.parse import unquote

ROOT = "/memories"
_MOST_DECODED = 8
_LOOKALIKES = str.maketrans({
    "∕": "/", "⁄": "/", "⧸": "/", "╱": "/", "⟋": "/",
    "⧵": "\\", "∖": "\\", "⟍": "\\", "╲": "\\",
    "․": ".", "‥": "..", "…": "...", "。": ".", "｡": ".", "۔": ".", "܁": ".", "·": ".",
})  # fmt: skip
"""Characters that are read as separators and dots, besides those that NFKC replaces."""


def key_of(path: str) -> str:
    """Returns the key of the file or directory of a path, without the root; "" for the root itself.

    Raises ValueError, whose message is for the model, for a path outside of the root, and for one
    that goes upwards in any spelling: encoded, with lookalikes of dots and slashes, with
    backslashes or control characters.
    """
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ValueError(f"Path must start with {ROOT}, got: {path}")
    for form in _readings_of(path):
        if not form.isprintable() or "\\" in form or not form.startswith(ROOT):
            raise ValueError(f"Path {path} would escape {ROOT} directory")
        if any(segment.strip(" ") in (".", "..", "...", "~") for segment in form.split("/")):
            raise ValueError(f"Path {path} would escape {ROOT} directory")
        if _depth(form) != _depth(path):
            raise ValueError(f"Path {path} would escape {ROOT} directory")
    return "/".join(filter(None, path[len(ROOT) :].split("/")))


def _readings_of(path: str) -> list[str]:
    """Returns a path as it may be read: decoded as often as it can be, with lookalikes replaced."""
    forms = [path]
    while len(forms) <= _MOST_DECODED:
        plain = unicodedata.normalize("NFKC", forms[-1].translate(_LOOKALIKES))
        decoded = unquote(plain)
        if decoded == forms[-1]:
            return forms
        forms.append(decoded)
    # Nothing that is meant honestly is encoded this often.
    return [*forms, "\\"]


def _depth(path: str) -> int:
    return len([segment for segment in path.split("/") if segment])
