"""Draws one compiled context: `python -m benchmarks.context.picture FILE`.

The conversation is made up for it; the segments and their tokens are those of a compile.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

import memorywall
from memorywall.sdk.client import Client
from memorywall.wire.contexts import ContextResponse, SegmentResponse

_TALK = (
    "My order 17 has not arrived. It is a birthday present for my brother.",
    "I am sorry to hear that. I look at the shipment now.",
    "It must be here by Friday, otherwise I do not need it any more.",
    "The parcel left Hamburg on Monday. Parcels to Bonn take two days.",
    "It is Wednesday today, and nothing has come yet.",
    "Then it should come this afternoon. The carrier shows no delay.",
    "I was at home the whole day and nobody rang the bell.",
    "The carrier says that the van broke down near Cologne at noon.",
    "So when does it come? I leave for the party on Friday at 15:00.",
    "The carrier plans a new delivery, but it names no day.",
    "Please write to me at my office, I do not read private mail today.",
    "I noted that. Messages about order 17 go to your office.",
    "If it is lost, I want the blue one instead of the red one.",
    "We have 4 blue ones here, and I can reserve one of them for you.",
    "Yes, reserve it, but do not send it before I say so.",
    "One blue bicycle lamp is reserved until Saturday.",
    "Good. I am in a meeting for an hour now.",
    "I tell you as soon as the carrier answers.",
    "I am back. Is there any news about the parcel?",
    "The carrier can deliver on Thursday. That is free for you.",
)
_QUESTION = "Please do that. What happens if order 17 comes too late?"
_TOOLS = [
    {"name": name, "description": f"{text} {'The result is a JSON document. ' * 4}"}
    for name, text in (
        ("find_order", "Finds an order."), ("ask_carrier", "Asks for a faster delivery."),
        ("send_mail", "Sends a mail."), ("refund", "Pays money back."),
    )
]  # fmt: skip
_COLOURS = {
    "system": "#6b7280", "tools": "#6b7280", "core": "#6b7280", "semantic": "#3b6fb6",
    "episodic": "#58a08c", "shared": "#58a08c", "summary": "#8b7bb8", "turns": "#8b7bb8",
    "procedural": "#b5577a", "working": "#d9a441", "added": "#3b6fb6", "user": "#333333",
}  # fmt: skip
_WINDOW, _SUMMARIZED = 800, 12
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 960, 120, 440, 30, 92
_TEXT = 'font-family="system-ui, sans-serif" fill="#222"'
_LONGEST = 78


def main() -> None:
    """Compiles the context made up above and writes the picture."""
    with (
        tempfile.TemporaryDirectory() as directory,
        memorywall.open(Path(directory, "memory.db"), agent="helper") as client,
    ):
        context = _compile(client)
    Path(sys.argv[1]).write_text("\n".join([*_draw(context), ""]), encoding="utf-8")


def _compile(client: Client) -> ContextResponse:
    _remember(client)
    session = client.sessions.create("ann")
    for at, text in enumerate(_TALK):
        if at == _SUMMARIZED:
            session.checkpoint()
        session.add("assistant" if at % 2 else "user", text)
    intent = client.intents.create("Orders of ann")
    task = client.tasks.create(intent.id, "Find order 17", assigned_agent="helper")
    lease = client.tasks.claim(task.id).lease
    worker = client.scoped(task_id=task.id, fencing_token=lease.fencing_token)
    with worker.tasks.step(task.id, "deliver order 17 by Friday") as step:
        step.keep("carrier", {"answer": "Thursday is possible", "price": 0})
        return client.context(
            session.id, user=_QUESTION, system="You help customers of a shop. Be brief.",
            tools=_TOOLS, task_id=task.id, shared="global", window=_WINDOW,
            budgets={"system": 0.2},
        )  # fmt: skip


def _remember(client: Client) -> None:
    core = {"label": "persona", "text": "I am the helper of the shop, and I promise no dates."}
    client.memory.set("agent", "persona", core, "episodic", kind="core")
    policy = {"text": "Orders that come too late can be returned within 30 days."}
    source = client.memory.set("policies", "late", policy, "semantic")
    fact = {"text": "Who gets an order too late has 30 days to return it."}
    client.memory.set("facts", "late", fact, "semantic", derived_from=[source])
    changed = {"text": "Orders that come too late can be returned within 60 days."}
    client.memory.set("policies", "late", changed, "semantic")
    episode = {"text": "Order 9 came too late as well; ann was given 5 euros."}
    client.memory.set("episodes", "order 9", episode, "episodic")
    client.claims.acquire("ticket-order-17", 60, scope="global", purpose="find the parcel")


def _draw(context: ContextResponse) -> Iterator[str]:
    height = _TOP + _ROW * (len(context.segments) + 1) + 40
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">'
    yield "<title>One compiled context: its segments, their tokens and their first items</title>"
    yield f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    unit = (_WIDTH - 32) / context.window
    yield from _strip(context, unit)
    largest = max(segment.tokens for segment in context.segments)
    for place, segment in enumerate(context.segments):
        top = _TOP + place * _ROW
        colour = _COLOURS[segment.name]
        width = (_RIGHT - _LEFT - 60) * segment.tokens / largest
        yield f'<text x="16" y="{top + 17}" font-size="13" {_TEXT}>{segment.name}</text>'
        yield _bar(_LEFT, top + 4, width, colour, f"{segment.tokens} tokens")
        yield _label(_LEFT + width + 6, top + 17, str(segment.tokens))
        yield _label(_RIGHT, top + 17, _told(segment))
    top = _TOP + len(context.segments) * _ROW + 18
    room = context.window - context.reserve
    left_out = len(context.dropped)
    told = f"{context.tokens} of {room} tokens; {context.reserve} of {context.window} are kept"
    yield _label(16, top, f"{told} for the answer; {left_out} items do not fit or are summarized")
    yield "</svg>"


def _strip(context: ContextResponse, unit: float) -> Iterator[str]:
    """Draws the window with its segments in their order."""
    yield _label(16, 28, f"A window of {context.window:,} tokens", size=16)
    left = 16.0
    for segment in context.segments:
        width = segment.tokens * unit
        yield _bar(left, 42, width, _COLOURS[segment.name], f"{segment.name}: {segment.tokens}")
        left += width
    yield _bar(left, 42, (context.window - context.reserve - context.tokens) * unit, "#eee", "free")
    left = 16 + (context.window - context.reserve) * unit
    yield _bar(left, 42, context.reserve * unit, "#d1d5db", f"answer: {context.reserve}")
    yield _label(left + 6, 56, "answer")


def _bar(left: float, top: float, width: float, colour: str, title: str) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top}" width="{max(1, width):.1f}" height="20" fill="{colour}"'
        f' stroke="#fff"><title>{escape(title)}</title></rect>'
    )


def _label(left: float, top: float, text: str, size: int = 12) -> str:
    return f'<text x="{left:.1f}" y="{top}" font-size="{size}" {_TEXT}>{escape(text)}</text>'


def _told(segment: SegmentResponse) -> str:
    """Returns the beginning of the last item of a segment, and how many there are."""
    item = segment.items[-1]
    text = " ".join(str(item.content).split()).partition(" since ")[0]
    marks = f"[{', '.join(item.marks)}] " if item.marks else ""
    number = f"{len(segment.items)} items, the last: " if len(segment.items) > 1 else ""
    told = f"{number}{marks}{text}"
    return told if len(told) <= _LONGEST else f"{told[:_LONGEST]}..."


if __name__ == "__main__":
    main()
