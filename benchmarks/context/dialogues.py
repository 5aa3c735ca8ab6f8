"""Long dialogues with questions, and the turns that answer them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

_TURN = re.compile(r"D\d+:\d+")
_THINGS = (
    "bicycle", "passport", "piano", "garden shed", "parcel", "boiler", "invoice", "laptop",
    "apartment", "aquarium", "violin", "tent", "camera", "roof", "orchard", "telescope",
)  # fmt: skip
_OWNERS = ("Ann", "Bela", "Carl", "Dora", "Emil", "Frida", "Goran", "Hana", "Igor", "Jana")
_FACTS = (
    ("{o}'s {t} was repaired for {n} euros.", "What did the repair of {o}'s {t} cost?"),
    ("The {t} of {o} has the number {n}.", "Which number is on {o}'s {t}?"),
    ("{o} wants to sell the {t} before day {n}.", "Until when does {o} plan to sell the {t}?"),
    ("The {t} that {o} ordered weighs {n} kilograms.", "How heavy is the {t} {o} bought?"),
)
_TALK = (
    "I see, thanks for telling me.", "The weather was awful again this week, was it not?",
    "Let me think about that for a moment and come back to you.", "We talked about dinner plans.",
    "My cousin called yesterday and we laughed a lot about old stories.", "Sounds good to me!",
    "There was a long queue at the station, so everybody arrived late in the end.",
    "I have been reading a novel about sailors, and it is slow but beautiful.",
)  # fmt: skip


Evidence = tuple[frozenset[int], ...]
"""The positions of turns, from 1: of each set one turn is needed to answer a question."""


@dataclass(slots=True)
class Dialogue:
    """A dialogue.

    turns: pairs of a role and a text
    questions: pairs of a question and its evidence
    """

    turns: list[tuple[str, str]] = field(default_factory=list)
    questions: list[tuple[str, Evidence]] = field(default_factory=list)


def generated(seed: int, turns: int, questions: int = 40) -> Dialogue:
    """Returns a dialogue in which facts lie at random places among talk."""
    source = Random(seed)
    made = Dialogue()
    places = set(source.sample(range(turns), questions))
    pairs = [(owner, thing) for owner in _OWNERS for thing in _THINGS]
    source.shuffle(pairs)
    for place in range(turns):
        role = "assistant" if place % 2 else "user"
        talk = " ".join(source.sample(_TALK, 2))
        if place in places:
            owner, thing = pairs.pop()
            fact, question = source.choice(_FACTS)
            names: dict[str, Any] = {"o": owner, "t": thing, "n": source.randrange(10, 900)}
            talk = f"{fact.format(**names)} {source.choice(_TALK)}"
            made.questions.append((question.format(**names), (frozenset({place + 1}),)))
        made.turns.append((role, talk))
    return made


def read(path: Path) -> list[Dialogue]:
    """Returns the dialogues of a file in a form that `make bench-recall` reads as well: that of
    LoCoMo, or conversations with messages."""
    content = json.loads(path.read_text("utf-8"))
    if isinstance(content, dict):
        by_session = content["unit"] == "session"
        return [_collected(one, by_session=by_session) for one in content["conversations"]]
    return _of_locomo(content)


def _collected(told: dict[str, Any], *, by_session: bool) -> Dialogue:
    """Returns a conversation. If its evidence is whole sessions, one turn of each is needed."""
    one = Dialogue()
    places: dict[str, set[int]] = {}
    previous = None
    for message in told["messages"]:
        role = "assistant" if message["author"] == "assistant" else "user"
        head = f"({message['date']}) " if message["session"] != previous else ""
        previous = message["session"]
        one.turns.append((role, f"{head}{message['text']}"))
        unit = message["session"] if by_session else message["id"]
        places.setdefault(unit, set()).add(len(one.turns))
    units = {message["id"]: message["session"] for message in told["messages"]}
    for asked in told["questions"]:
        gold = {units[one] if by_session else one for one in asked["evidence"]}
        if gold:
            evidence = tuple(frozenset(places[unit]) for unit in sorted(gold))
            one.questions.append((asked["question"], evidence))
    return one


def _of_locomo(content: list[dict[str, Any]]) -> list[Dialogue]:
    found = []
    for told in content:
        talk = told["conversation"]
        one = Dialogue()
        places: dict[str, int] = {}
        number = 1
        while f"session_{number}" in talk:
            date = talk[f"session_{number}_date_time"]
            for at, turn in enumerate(talk[f"session_{number}"]):
                role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
                about = f" [{turn['blip_caption']}]" if "blip_caption" in turn else ""
                head = f"({date}) " if at == 0 else ""
                one.turns.append((role, f"{head}{turn['speaker']}: {turn['text']}{about}"))
                places[turn["dia_id"]] = len(one.turns)
            number += 1
        for asked in told["qa"]:
            gold = {turn for text in asked["evidence"] for turn in _TURN.findall(text)}
            if asked["category"] != 5 and gold and gold <= places.keys():
                evidence = tuple(frozenset({places[turn]}) for turn in sorted(gold))
                one.questions.append((asked["question"], evidence))
        found.append(one)
    return found
