"""Made-up requests to the context compiler, and what every context must be."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from memorywall.context.anthropic_messages import as_anthropic
from memorywall.context.budgets import GROUP_OF
from memorywall.context.formats import as_text
from memorywall.context.item import SEGMENTS, STRATEGIES, Compiled, ContextItem, SegmentName
from memorywall.context.openai_messages import as_openai
from memorywall.context.request import CompileRequest
from memorywall.context.response_items import as_responses
from memorywall.tokens.estimate import estimate
from tests.context.provider_check import check_anthropic, check_openai, check_responses

NOW = "2026-05-01T00:00:00.000Z"
_WORDS = (
    "invoice", "refund", "Berlin", "3.20", "please", "北京", "order", "late", "naïve", "{json: 1}",
    "because", "not", "42", "sure",
)  # fmt: skip


def words(source: Random, most: int) -> str:
    """Some words."""
    return " ".join(source.choice(_WORDS) for _ in range(source.randint(1, most)))


def turns(source: Random, number: int, session: str) -> list[ContextItem]:
    """Turns with exchanges with tools, some of them incomplete or late, and with ids that repeat or
    that another provider made."""
    found: list[ContextItem] = []
    late: list[str] = []
    while len(found) < number:
        kind = source.random()
        made = [f"c{len(found)}-{at}" for at in range(source.randint(1, 3))]
        calls = [source.choice((one, one, "call_0", "fc.12:3", "x" * 66)) for one in made]
        if kind < 0.2:
            found.append(_turn(source, len(found) + 1, session, "assistant", calls=calls))
            if source.random() < 0.2:
                late.append(calls.pop())
            found += [
                _turn(source, len(found) + at, session, "tool", answers=call)
                for at, call in enumerate(calls, 1)
            ]
        elif kind < 0.3 and late:
            found.append(_turn(source, len(found) + 1, session, "tool", answers=late.pop()))
        else:
            role = source.choice(("user", "user", "assistant", "system", "tool"))
            answers = source.choice(("lost", None)) if role == "tool" else None
            found.append(_turn(source, len(found) + 1, session, role, answers=answers))
    return found


def _turn(
    source: Random,
    sequence: int,
    session: str,
    role: str,
    calls: list[str] | None = None,
    answers: str | None = None,
) -> ContextItem:
    text = source.choice((*[words(source, 30)] * 15, "", " \n"))
    is_parted = source.random() < 0.2
    return ContextItem(
        id=f"turn-{sequence:05d}",
        segment="turns",
        content=_parts(source, text) if is_parted else text,
        role=role,
        sequence=sequence,
        session_id=session if source.random() < 0.97 else "other",
        trusted=source.random() < 0.9,
        name=source.choice((None, None, "Ann", "Bob Smith")),
        score=source.random() if source.random() < 0.2 else 0.0,
        tool_calls=tuple(
            {
                "id": one,
                "name": source.choice(("look", "mcp.look")),
                "arguments": source.choice(({"a": 1}, '{"a')),
            }
            for one in calls or ()
        ),
        tool_call_id=answers,
        stale_at=NOW if source.random() < 0.05 else None,
    )


def _parts(source: Random, text: str) -> list[dict[str, Any]]:
    """Content parts of either provider, and of none."""
    inline = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    plain = {"type": "text", "media_type": "text/plain", "data": text}
    choices: list[dict[str, Any]] = [
        {"type": "text", "text": text},
        {"type": "output_text", "text": text},
        {"type": "image", "source": inline},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "document", "source": plain},
        {"type": "refusal", "refusal": text},
        {"type": "thinking", "thinking": text, "signature": source.choice(("c2ln", ""))},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "of_tomorrow", "words": text},
        {"type": source.choice(("image", "image_url", "refusal", "document", "output_text"))},
        {"type": "image", "source": {"type": "file", "file_id": "f1"}},
        {"type": "input_text", "text": [text]},
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]},
    ]
    return source.choices(choices, k=source.randint(0, 3))


def items(source: Random) -> list[ContextItem]:
    """Items of every segment."""
    found = [ContextItem(id="request.system", segment="system", content=words(source, 40),
                         mandatory=True)]  # fmt: skip
    if source.random() < 0.8:
        found.append(
            ContextItem(id="request.user", segment="user", content=words(source, 30),
                        mandatory=True)
        )  # fmt: skip
    for name in ("core", "semantic", "episodic", "shared", "summary", "procedural", "working"):
        number = source.choice((0, 1, 3, 12)) if name not in {"core", "summary"} else 1
        found += [_memory(source, name, at) for at in range(number)]
    for at in range(source.choice((0, 2, 30))):
        tool = json.dumps({"name": f"tool{at}", "description": words(source, 40)})
        found.append(ContextItem(id=f"tool-{at}", segment="tools", content=tool, name=f"tool{at}",
                                 brief=words(source, 5)))  # fmt: skip
    return found + turns(source, source.choice((0, 1, 6, 60)), "s")


def _memory(source: Random, name: SegmentName, at: int) -> ContextItem:
    return ContextItem(
        id=f"{name}-{at}",
        segment=name,
        content=words(source, 60),
        version=source.randint(1, 3),
        score=source.random(),
        mandatory=name == "core",
        subjects=source.choice(((), ("ann",), ("bob",))),
        session_id=source.choice((None, "s", "other")) if name != "core" else None,
        expires_at=source.choice((None, "2026-04-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z")),
        trusted=source.random() < 0.8,
        source_changed=source.random() < 0.1,
        sequence=source.choice((3, 20)) if name == "summary" else 0,
    )


def request(
    source: Random, found: list[ContextItem] | None = None, **fields: Any
) -> CompileRequest:
    """A request with a window that is sometimes too small."""
    window = source.choice((300, 1_000, 4_000, 16_000, 128_000))
    given: dict[str, Any] = {
        "window": window,
        "reserve": int(window * source.choice((0, 0.128, 0.5))),
        "budgets": {
            name: source.choice((0.1, 0.3, 200))
            for name in ("semantic", "episodic", "session", "procedural", "working")
            if source.random() < 0.15
        },
        "items": items(source) if found is None else found,
        "now": NOW,
        "strategy": source.choice(STRATEGIES),
        "session_id": "s",
        "subjects": frozenset({"ann"}) if source.random() < 0.7 else None,
        "query": words(source, 5),
    }
    return CompileRequest(**{**given, **fields})


def check(asked: CompileRequest, compiled: Compiled) -> None:
    """Asserts what every context must be."""
    used = sum(item.tokens for segment in compiled.segments for item in segment.items)
    assert used <= compiled.tokens <= asked.window - asked.reserve
    # The estimate of the whole text is within what was counted for its parts.
    assert estimate(as_text(compiled)) <= compiled.tokens + 3 * len(compiled.segments)
    names = [segment.name for segment in compiled.segments]
    assert names == [name for name in SEGMENTS if name in names]
    for group, budget in asked.budgets.items():
        limit = budget if budget >= 1 else budget * asked.window
        mine = [
            item.tokens for segment in compiled.segments for item in segment.items
            if GROUP_OF.get(item.segment) == group
        ]  # fmt: skip
        assert sum(mine) <= limit
    shown = {item.id for segment in compiled.segments for item in segment.items}
    dropped = {item.id for item in compiled.dropped}
    assert not shown & dropped
    assert shown | dropped >= {item.id for item in asked.items}
    for segment in compiled.segments:
        for item in segment.items:
            assert item.session_id in {None, asked.session_id}
            assert asked.subjects is None or asked.subjects.issuperset(item.subjects)
            assert item.expires_at is None or item.expires_at > asked.now
            assert item.tokens > 0
            assert item.reason
    sources = {item.id: item.content for item in asked.items}
    for segment in compiled.segments:
        assert all(
            sources.get(item.id, item.content) == item.content
            for item in segment.items if item.reason != "summary_shortened"
        )  # fmt: skip
    check_openai(as_openai(compiled))
    check_responses(as_responses(compiled))
    check_anthropic(**as_anthropic(compiled))
