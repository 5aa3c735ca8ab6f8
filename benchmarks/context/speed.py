"""The time of a compile, and the part of a prompt that begins like the one before it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from benchmarks.context.dialogues import generated
from memorywall.assembly import settings_for
from memorywall.context.item import STRATEGIES, Strategy
from memorywall.in_process.opening import open_settings


def compile_times(
    directory: Path, turns: int, entries: int, compiles: int, window: int, store: str | None = None
) -> list[tuple[float, float]]:
    """Returns the seconds of compiles, warm, in a session, beside so many episodic entries, and the
    seconds of the process's processor time; the query is not embedded.

    directory: of the key; with a key of another directory a database cannot be opened again
    store: PostgreSQL; default: a SQLite file in the directory
    """
    dialogue = generated(1, turns)
    source = Random(2)
    settings = replace(settings_for(directory, database_url=store), embedder="none")
    with open_settings(settings, f"bench-{turns}-{window}") as client:
        session = client.sessions.create("person")
        for at in range(0, turns, 100):
            session.add_many(
                [{"role": role, "content": text} for role, text in dialogue.turns[at : at + 100]]
            )
        for at in range(0, entries, 100):
            client.memory.batch(
                {"namespace": "notes", "key": f"n{number}", "memory_type": "episodic",
                 "value": {"text": f"{dialogue.turns[source.randrange(turns)][1]} {number}"}}
                for number in range(at, min(entries, at + 100))
            )  # fmt: skip
        times = []
        for at in range(compiles + 10):
            question = dialogue.questions[at % len(dialogue.questions)][0]
            begun = time.perf_counter(), time.process_time()
            client.context(session.id, user=question, window=window, system="Be brief.")
            times.append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
    return times[10:]


def prefixes(
    turns: int, window: int, repeated: int = 1, strategies: Sequence[Strategy] = STRATEGIES
) -> dict[str, list[float]]:
    """Returns the shares of each prompt that begins the next one, by strategy, in a session that is
    compacted.

    repeated: how often each turn says its text, which makes exchanges longer
    """
    dialogue = generated(3, turns, questions=turns // 3)
    found: dict[str, list[float]] = {}
    for strategy in strategies:
        with tempfile.TemporaryDirectory() as directory:
            settings = replace(settings_for(Path(directory), database_url=None), embedder="none")
            with open_settings(settings, "bench") as client:
                session = client.sessions.create("person", policy={"checkpoint_turns": 10})
                shares, before = [], ""
                for at, (role, text) in enumerate(dialogue.turns):
                    session.add(role, " ".join([text] * repeated))
                    if at % 20 == 19:
                        session.checkpoint()
                    if role != "user":
                        continue
                    context = client.context(
                        session.id, strategy=strategy, window=window, format="text",
                        system="You are a helpful assistant. " * 20,
                    )  # fmt: skip
                    now = context.text or ""
                    if at:
                        shares.append(_common(before, now) / len(before))
                    before = now
        found[strategy] = shares
    return found


def _common(one: str, other: str) -> int:
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))
