"""The share of questions whose evidence is in the compiled context."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import replace
from math import sqrt
from pathlib import Path

from benchmarks.context.dialogues import Dialogue, Evidence
from memorywall.assembly import settings_for
from memorywall.context.item import STRATEGIES
from memorywall.context.rendering import MESSAGE_TOKENS
from memorywall.in_process.opening import open_settings
from memorywall.sdk.client import Client
from memorywall.tokens.estimate import estimate

WINDOWS = (2_000, 4_000, 8_000, 16_000)
_RESERVE = 0.128
Shares = dict[tuple[str, int], list[bool]]
"""Whether each question's evidence was in the context, by method and window."""


def measure(
    dialogues: Sequence[Dialogue], embedder: str, windows: Sequence[int], most: int
) -> Shares:
    """Asks every question of every dialogue.

    embedder: the embedder of the store, `none` to search by words only
    most: the most questions of a dialogue
    """
    found: Shares = defaultdict(list)
    for dialogue in dialogues:
        with tempfile.TemporaryDirectory() as directory:
            settings = replace(settings_for(Path(directory), database_url=None), embedder=embedder)
            with open_settings(settings, "bench") as client:
                _measure_one(client, dialogue, windows, most, found)
    return found


def _measure_one(
    client: Client, dialogue: Dialogue, windows: Sequence[int], most: int, found: Shares
) -> None:
    session = client.sessions.create("person", token_budget=8_192)
    for at in range(0, len(dialogue.turns), 100):
        session.add_many(
            {"role": role, "content": text} for role, text in dialogue.turns[at : at + 100]
        )
    session.checkpoint()
    ids: dict[str, int] = {}
    after = 0
    while page := session.turns(after=after, limit=500):
        ids |= {turn.id: turn.sequence for turn in page}
        after = page[-1].sequence
    number = len(dialogue.questions)
    places = sorted({at * number // most for at in range(most)} & set(range(number)))
    for question, gold in (dialogue.questions[place] for place in places):
        for window in windows:
            room = window - int(window * _RESERVE) - estimate(question) - MESSAGE_TOKENS
            found["recency only", window].append(_is_in(gold, _newest(dialogue, room)))
            oldest = _newest(dialogue, room, oldest=True)
            found["truncation", window].append(_is_in(gold, oldest))
            for strategy in STRATEGIES:
                context = client.context(
                    session.id, user=question, window=window, strategy=strategy, store=False
                )
                shown, summary = set(), ""
                for segment in context.segments:
                    for item in segment.items:
                        if item.id in ids:
                            shown.add(ids[item.id])
                        elif segment.name == "summary":
                            summary = str(item.content)
                shown |= {
                    place
                    for place in frozenset().union(*gold)
                    if dialogue.turns[place - 1][1] in summary
                }
                found[strategy, window].append(_is_in(gold, shown))


def _is_in(gold: Evidence, shown: Set[int]) -> bool:
    return all(not shown.isdisjoint(places) for places in gold)


def _newest(dialogue: Dialogue, room: int, *, oldest: bool = False) -> set[int]:
    """Returns the newest turns that fit, or the oldest ones."""
    kept: set[int] = set()
    places = range(1, len(dialogue.turns) + 1)
    for place in places if oldest else reversed(places):
        room -= estimate(dialogue.turns[place - 1][1]) + MESSAGE_TOKENS
        if room < 0:
            break
        kept.add(place)
    return kept


def interval(hits: Sequence[bool]) -> tuple[float, float]:
    """Returns a share and half of its 95 % interval."""
    share = sum(hits) / len(hits)
    return share, 1.96 * sqrt(share * (1 - share) / len(hits))
