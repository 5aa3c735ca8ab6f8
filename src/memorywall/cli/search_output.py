"""Prints the results of a search."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from memorywall.cli.output import count_of, print_json, print_table
from memorywall.kinds import registry as kinds
from memorywall.kinds.sessions import TURN

if TYPE_CHECKING:
    from memorywall.sdk.models import MemoryEntry, SearchHit, SearchResults

_SIGNALS = ("lexical", "dense", "thread", "author", "date", "graph", "recency", "outcome", "use")
_FACTORS = ("prior", "superseded", "series", "earlier_question")
_AUTHOR = "author"
_DATE = "date"
_TEXT = "text"
_CAPTION = "caption"
_WIDTH = 120
"""The width of the output without a terminal, in characters."""
_GAP = 2
_HEADING_PADDING = 2
"""The least width around a heading, in characters."""
_LEAST_TEXT = 24
_WIDEST_WORDS = 56
_WIDEST_NAME = 20


def print_findings_json(found: SearchResults) -> None:
    """Prints the results of a search as JSON, with what the search covered."""
    reply = {"relevance": found.relevance, "answered": found.answered, "left_out": found.left_out}
    covered = {"model": found.model, "searched": found.searched, "pending": found.pending}
    print_json({"results": list(found), **reply, **covered})


def print_findings(found: SearchResults) -> None:
    """Prints one line per result, cut to the width of the screen, and a summary."""
    if not found:
        click.echo("nothing found")
        click.echo(found.note, err=True)
    else:
        columns = _columns(found)
        width = shutil.get_terminal_size((_WIDTH, 0)).columns
        taken = sum(_width_of(name, cells) + _GAP for name, cells in columns)
        texts = [_clean(_shown_of(hit)) for hit in found]
        widest = max(width - taken, _LEAST_TEXT)
        columns.append((_TEXT, [_cut(text, widest) for text in texts]))
        print_table(
            [name for name, _ in columns],
            zip(*(cells for _, cells in columns), strict=True),
            widest=None,
        )
    if found and not found.answered:
        click.echo("probably none of these is an answer", err=True)
    if found.left_out:
        results = "1 result was" if found.left_out == 1 else f"{found.left_out} results were"
        click.echo(f"{results} left out: not relevant enough", err=True)
    if found.pending:
        entries = count_of(found.pending, "entry is", "entries are")
        click.echo(f"{entries} not embedded yet and found by words only")


def _shown_of(hit: SearchHit) -> str:
    """The text of a result: the best passage of a long one."""
    if hit.highlight is not None:
        return hit.highlight.text
    return hit.text if hit.entry.kind == TURN.name else _text_of(hit.entry)


def _columns(found: Sequence[SearchHit]) -> list[tuple[str, list[str]]]:
    """All columns but the text, without empty columns."""
    entries = [hit.entry for hit in found]
    who = [_cut(_clean(_said(entry, _AUTHOR)), _WIDEST_NAME) for entry in entries]
    when = [_cut(_clean(_said(entry, _DATE)), _WIDEST_NAME) for entry in entries]
    columns = [
        ("rank", [str(rank) for rank in range(1, len(entries) + 1)]),
        ("score", [f"{hit.score:.3f}" for hit in found]),
        ("relevance", [f"{hit.relevance:.2f}" for hit in found]),
        *_explained(found),
        ("where", [_full_name(hit) for hit in found]),
        ("who", who),
        ("when", when),
    ]
    return [(name, cells) for name, cells in columns if any(cells)]


def _explained(found: Sequence[SearchHit]) -> list[tuple[str, list[str]]]:
    """A column for each signal that any result has, for the links to better results, and for the
    matched words."""
    explains = [hit.explain for hit in found]
    if any(explain is None for explain in explains):
        return []
    columns = []
    for name in _SIGNALS:
        shares = [getattr(explain, name) for explain in explains]
        if any(shares):
            columns.append((name, [f"{share:.3f}" for share in shares]))
    for name in _FACTORS:
        factors = [getattr(explain, name) for explain in explains]
        if any(factor != 1 for factor in factors):
            columns.append((name, [f"{factor:.3f}" for factor in factors]))
    links = [_cut(_clean(explain.link or ""), _WIDEST_NAME) for explain in explains if explain]
    if any(links):
        columns.append(("link", links))
    terms = [" ".join(explain.terms) for explain in explains if explain is not None]
    return [*columns, ("words", [_cut(_clean(one), _WIDEST_WORDS) for one in terms])]


def _full_name(hit: SearchHit) -> str:
    if hit.sequence is not None:
        return f"turn {hit.sequence} of {hit.session_id}"
    entry = hit.entry
    return f"{entry.memory_type}/{entry.namespace}/{entry.key}"


def _said(entry: MemoryEntry, name: str) -> str:
    said = entry.value.get(name)
    return said if isinstance(said, str) else ""


def _text_of(entry: MemoryEntry) -> str:
    """The text of an entry as its kind defines it, or without the values of other columns."""
    if text := kinds.line_of(entry.kind, entry.kind_version, entry.value):
        return text
    rest: dict[str, Any] = {
        name: part
        for name, part in entry.value.items()
        if not (name in (_AUTHOR, _DATE) and isinstance(part, str))
    }
    plain = rest.get(_TEXT)
    if isinstance(plain, str):
        caption = rest.get(_CAPTION)
        return f"{plain} [{caption}]" if isinstance(caption, str) else plain
    if len(rest) == 1:
        (only,) = rest.values()
        if isinstance(only, str):
            return only
    return msgspec.json.encode(rest).decode()


def _width_of(name: str, cells: Sequence[str]) -> int:
    return max(len(name) + _HEADING_PADDING, *map(len, cells))


def _clean(text: str) -> str:
    """A text on one line, without control characters of terminals."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _cut(text: str, widest: int) -> str:
    return text if len(text) <= widest else text[: widest - 1] + "…"
