"""The segments of a context that are text, in the order in which every format shows them."""

from __future__ import annotations

from collections.abc import Iterable

from memorywall.context.item import Compiled, SegmentName
from memorywall.context.rendering import DATA_MARK, HEADINGS, render
from memorywall.context.tools import LISTED

HEAD: tuple[SegmentName, ...] = ("system", "tools", "core")
MEMORY: tuple[SegmentName, ...] = ("semantic", "episodic", "shared", "summary")
TAIL: tuple[SegmentName, ...] = ("procedural", "working", "added")


def render_block(compiled: Compiled, names: Iterable[SegmentName]) -> str:
    """Returns the text of segments, each under its heading."""
    blocks = []
    for name in names:
        items = compiled.items(name)
        if name == "tools":
            items = tuple(item for item in items if item.id == LISTED)
        if items:
            lines = [render(item) for item in items]
            blocks.append("\n".join([HEADINGS[name], *lines] if name in HEADINGS else lines))
    return "\n\n".join(blocks)


def render_tail(compiled: Compiled) -> str:
    """Returns what stands before the message of the user, marked as data; nothing without any."""
    text = render_block(compiled, TAIL)
    return f"{DATA_MARK}\n{text}" if text else ""
