"""Draws what the scores of one query are made of: `python -m benchmarks.recall.picture FILE`.

The memory is a small one made up for it; the scores are what the pipeline gives.
"""

from __future__ import annotations

import sys
import tempfile
from html import escape
from pathlib import Path
from time import monotonic, sleep

import memorywall
from memorywall.sdk.models import SearchHit

_QUERY = "What did Ana decide about the budget in March?"
_SESSIONS = {
    "planning-1": (
        "2026-03-02T10:00:00Z",
        [
            ("Ben", "Morning Ana! Did the review of the budget go well?"),
            ("Ana", "Yes. We keep the spending for research and cut travel by a third."),
            ("Ben", "Good, then I can tell the lab that their money is safe."),
            ("Ana", "Please do. The final figures come on Friday."),
        ],
    ),
    "planning-2": (
        "2026-06-15T10:00:00Z",
        [
            ("Ben", "The budget for next year needs another look."),
            ("Ana", "Let us find an office first and talk about money then."),
            ("Ben", "I can visit two of them on Tuesday."),
        ],
    ),
    "lunch": (
        "2026-03-05T12:00:00Z",
        [
            ("Ben", "The noodle place has reopened."),
            ("Ana", "Then I know where we are going today."),
        ],
    ),
}
_COLOURS = {
    "lexical": ("words", "#3b6fb6"),
    "dense": ("meaning", "#58a08c"),
    "date": ("date", "#d9a441"),
    "author": ("author", "#b5577a"),
    "thread": ("thread", "#8b7bb8"),
}
_WIDTH, _LEFT, _ROW, _UNIT, _TOP = 900, 410, 34, 250, 78
_TEXT = 'font-family="system-ui, sans-serif" fill="#222"'
_PATIENCE = 60.0


def main() -> None:
    """Asks the query of the memory made up above and writes the picture."""
    target = Path(sys.argv[1])
    target.write_text(_draw(_ask()), encoding="utf-8")


def _ask() -> list[SearchHit]:
    with (
        tempfile.TemporaryDirectory() as directory,
        memorywall.open(Path(directory, "memory.db"), agent="planner") as client,
    ):
        for session, (date, messages) in _SESSIONS.items():
            for number, (author, text) in enumerate(messages):
                client.memory.set(
                    "chat/planning",
                    f"{session}-{number}",
                    {"text": text, "author": author, "date": date},
                    "session",
                    scope={"session_id": session},
                )
        deadline = monotonic() + _PATIENCE
        while (found := client.memory.search(_QUERY, limit=5, explain=True)).pending:
            if monotonic() > deadline:
                raise TimeoutError("the entries were not embedded in time")
            sleep(0.1)
        return list(found)


def _draw(hits: list[SearchHit]) -> str:
    height = _TOP + _ROW * len(hits) + 16
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>What the scores of one query are made of: {escape(_QUERY)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="16" y="28" font-size="16" font-weight="600" {_TEXT}>{escape(_QUERY)}</text>',
        *_legend(),
    ]
    for place, hit in enumerate(hits):
        lines.extend(_row(_TOP + place * _ROW, hit))
    return "\n".join([*lines, "</svg>", ""])


def _legend() -> list[str]:
    lines, left = [], _LEFT
    for label, colour in _COLOURS.values():
        lines.append(f'<rect x="{left}" y="44" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{left + 17}" y="54" font-size="12" {_TEXT}>{label}</text>')
        left += 32 + 7 * len(label)
    return lines


def _row(top: int, hit: SearchHit) -> list[str]:
    assert hit.explain is not None
    value = hit.entry.value
    said = escape(f"{value['author']}: {value['text']}"[:58])
    lines = [f'<text x="16" y="{top + 18}" font-size="13" {_TEXT}>{said}</text>']
    left = float(_LEFT)
    for name, (label, colour) in _COLOURS.items():
        share = getattr(hit.explain, name)
        width = share * _UNIT
        if width > 0:
            lines.append(
                f'<rect x="{left:.1f}" y="{top + 4}" width="{width:.1f}" height="20"'
                f' fill="{colour}"><title>{label} {share:.2f}</title></rect>'
            )
            left += width
    total = f"times {hit.explain.prior:.2f} = {hit.score:.2f}"
    lines.append(f'<text x="{left + 6:.1f}" y="{top + 18}" font-size="12" {_TEXT}>{total}</text>')
    return lines


if __name__ == "__main__":
    main()
