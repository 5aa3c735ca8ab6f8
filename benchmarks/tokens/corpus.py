"""Texts for the calibration of the estimate of tokens, and other texts for its test.

Prose is the project's documentation, code the standard library, JSON is generated, and the other
languages lie in `texts/languages.toml`.
"""

from __future__ import annotations

import json
import random
import re
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
Corpus = dict[str, list[str]]
"""The texts of each kind."""

_PROSE = (
    ("concepts", "operations", "recall", "everyday"),
    ("coordination", "moving", "quickstart", "queries"),
)
_CODE = (
    ("argparse", "subprocess", "dataclasses", "shutil", "csv", "typing", "ast", "pathlib"),
    ("textwrap", "zipfile", "queue", "inspect", "http/client", "statistics"),
)
_WORDS = tuple(
    """
    order invoice customer name address city status paid pending total amount currency created
    updated items quantity price description shipping tracking note email phone priority assignee
    deadline region version enabled threshold
    """.split()  # noqa: SIM905
)


def load(held_out: bool) -> Corpus:
    """Returns the texts of the calibration, or those of the test."""
    library = Path(sysconfig.get_paths()["stdlib"])
    prose = [(ROOT / "docs" / f"{name}.md") for name in _PROSE[held_out]]
    code = [library / f"{name}.py" for name in _CODE[held_out]]
    corpus = {
        "prose": [part for path in prose for part in _parts(path.read_text("utf-8"))],
        "code": [part for path in code for part in _parts(path.read_text("utf-8"))],
        "JSON": [
            _document(random.Random(seed)) for seed in range(80 * held_out, 80 + 80 * held_out)
        ],
    }
    texts = tomllib.loads((Path(__file__).parent / "texts/languages.toml").read_text("utf-8"))
    for language, found in texts.items():
        if held_out:
            corpus[language] = [text.strip() for text in found["held_out"]]
        else:
            corpus[language] = [part for text in found["calibration"] for part in _sentences(text)]
    return corpus


def _parts(text: str, length: int = 1_000) -> Iterator[str]:
    """Yields parts of whole lines with at least so many characters."""
    part = ""
    for line in text.splitlines(keepends=True):
        part += line
        if len(part) >= length:
            yield part
            part = ""


def _sentences(text: str) -> Iterator[str]:
    yield text.strip()
    sentences = re.split(r"(?<=[.。])\s*", text.strip())
    for first in range(0, len(sentences), 4):
        yield " ".join(sentences[first : first + 4])


def _document(source: random.Random) -> str:
    lines = ""
    while len(lines) < 900:
        value = {source.choice(_WORDS): _json(source, 0) for _ in range(5)}
        lines += json.dumps(value, indent=source.choice((None, 2))) + "\n"
    return lines


def _json(source: random.Random, depth: int) -> Any:
    match source.randrange(8 if depth < 3 else 6):
        case 0:
            return source.randrange(10 ** source.randrange(1, 9))
        case 1:
            return round(source.uniform(0, 1000), 2)
        case 2:
            return " ".join(source.choices(_WORDS, k=source.randrange(1, 7)))
        case 3:
            return f"2026-{source.randrange(1, 13):02}-{source.randrange(1, 29):02}T08:15:00Z"
        case 4:
            return f"{source.getrandbits(128):032x}" if source.random() < 0.3 else None
        case 5:
            return source.choice(_WORDS)
        case 6:
            return [_json(source, depth + 1) for _ in range(source.randrange(1, 5))]
        case _:
            names = ["_".join(source.choices(_WORDS, k=source.randrange(1, 3))) for _ in range(4)]
            return {name: _json(source, depth + 1) for name in names}
