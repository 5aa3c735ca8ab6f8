"""Random operations on sessions against a model; the store is opened anew in between."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

import memorywall
from memorywall.exceptions import ResourceConflictError
from memorywall.sdk.client import Client
from tests.support.backend import store_of
from tests.support.extent import chosen_seed, extent

_STEPS = extent(60, long=2_000)


class Model:
    """What a session must contain."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.ids: dict[str, int] = {}

    def cut(self, last: int) -> None:
        self.texts = self.texts[:last]
        self.ids = {name: place for name, place in self.ids.items() if place <= last}


def test_sessions_do_what_their_model_does(tmp_path: Path) -> None:
    place = store_of(tmp_path) or str(tmp_path / "memory.db")
    dice = random.Random(chosen_seed())
    models: dict[str, Model] = {}
    for _ in range(4):
        with memorywall.open(place, agent="ada") as client:
            _compare(client, models)
            for _ in range(_STEPS // 4):
                _step(client, models, dice)
            _compare(client, models)


def _step(client: Client, models: dict[str, Model], dice: random.Random) -> None:
    if not models or dice.random() < 0.05:
        policy = {"checkpoint_turns": dice.choice([0, 2, 5])}
        made = client.sessions.create("ann", policy=policy, token_budget=dice.choice([30, 8_192]))
        models[made.id] = Model([])
    session_id = dice.choice(list(models))
    model, session = models[session_id], client.sessions.get(session_id)
    action = dice.choices(
        ["add", "repeat", "checkpoint", "resume", "remove", "clear", "fork"],
        [8, 2, 3, 3, 2, 0.5, 1],
    )[0]
    if action == "add":
        turns: list[dict[str, Any]] = []
        for _ in range(dice.randint(1, 4)):
            text = f"The amount is {dice.randrange(10**6)} euros."
            name = f"c{dice.randrange(10**9)}"
            turns.append({"role": "user", "content": text, "client_id": name})
            model.texts.append(text)
            model.ids[name] = len(model.texts)
        session.add_many(turns)
    elif action == "repeat" and model.ids:
        name = dice.choice(list(model.ids))
        text = model.texts[model.ids[name] - 1]
        assert session.add("user", text, client_id=name).sequence == model.ids[name]
        with pytest.raises(ResourceConflictError):
            session.add("user", "again", client_id=name)
    elif action == "checkpoint":
        made_checkpoint = session.checkpoint()
        assert made_checkpoint.turn_count == len(model.texts)
    elif action == "resume":
        resumed = session.resume(replay=1_000)
        checkpoint = resumed.checkpoint
        start = 0 if checkpoint is None else checkpoint.summarized_through
        assert [one.content for one in resumed.turns] == model.texts[start:]
    elif action in ("remove", "clear"):
        last = 0 if action == "clear" else dice.randint(0, len(model.texts))
        session.remove_turns(last + 1)
        model.cut(last)
    elif action == "fork":
        last = dice.randint(0, len(model.texts))
        made = session.fork(last)
        models[made.id] = Model(model.texts[:last])
        models[made.id].ids = {name: place for name, place in model.ids.items() if place <= last}


def _compare(client: Client, models: dict[str, Model]) -> None:
    for session_id, model in models.items():
        session = client.sessions.get(session_id)
        turns = session.export().turns
        assert [one.content for one in turns] == model.texts
        assert [one.sequence for one in turns] == list(range(1, len(turns) + 1))
        counts = session.info.counts
        assert not isinstance(counts, msgspec.UnsetType)
        assert (counts.turn_count, counts.token_usage) == (
            len(turns),
            sum(one.tokens for one in turns),
        )
