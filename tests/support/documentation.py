"""The fenced blocks of a page of the documentation, and what they print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VARYING = [
    (re.compile(r"mw_[a-z2-7]{8}\.[A-Za-z0-9_-]{43}"), "KEY"),
    (re.compile(r"mw_[a-z2-7]{8}"), "PREFIX"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "SESSION"),
    (re.compile(r"mem_[0-9A-HJKMNP-TV-Z]{26}"), "ENTRY"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"billing-\d{10}"), "AGENT"),
    (re.compile(r"^\d+ +(?=TIME)", re.MULTILINE), "NUMBER "),
    (re.compile(r"\d+ entries and \d+ events agree"), "TOTALS"),
]


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the words after it, where and what it is."""

    language: str
    words: tuple[str, ...]
    line: int
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page in order."""
    content = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(content):
        language, *words = match[1].split() or [""]
        yield Block(language, tuple(words), content.count("\n", 0, match.start()) + 1, match[2])


def _comparable(text: str) -> str:
    for pattern, name in _VARYING:
        # Padded to the same width, so that the columns of a table stay where they are.
        text = pattern.sub(name, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def assert_printed(block: Block, printed: str, where: str) -> None:
    told, seen = _comparable(block.text), _comparable(printed)
    if block.language == "json":
        assert json.loads(seen) == json.loads(told), f"{where} printed:\n{printed}"
    else:
        assert seen == told, f"{where} printed:\n{printed}"
