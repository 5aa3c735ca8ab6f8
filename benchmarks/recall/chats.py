"""The data sets whose questions are asked: what goes into memory, and where the answers lie."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memorywall.cli.chat_files import Message
from memorywall.cli.chat_files import read_chats as read_messages
from memorywall.records.errors import ConfigurationError

_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop"}
"""Of LoCoMo's questions; the others have no answer in their conversation."""
_TURN = re.compile(r"D\d+:\d+")


class ChatError(Exception):
    """The file holds no data set in a known form."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question, and all units that hold a part of its answer."""

    agent: str
    text: str
    category: str
    gold: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chat:
    """A conversation or a collection as one agent remembers it.

    entries: the bodies of its entries, in order
    units: what is found with an entry, by key, where that is not the entry itself: its session
    """

    agent: str
    entries: list[dict[str, Any]]
    questions: list[Asked]
    units: dict[str, str] = field(default_factory=dict)

    def found(self, keys: Iterable[str]) -> list[str]:
        """The units of entries in the order of these keys, each at its first place."""
        return list(dict.fromkeys(self.units.get(key, key) for key in keys))


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSet:
    """Conversations or collections of one kind."""

    name: str
    chats: list[Chat]

    @property
    def questions(self) -> list[Asked]:
        """All questions, in the order of the conversations."""
        return [asked for chat in self.chats for asked in chat.questions]

    @property
    def categories(self) -> Sequence[str]:
        """The categories of its questions."""
        return sorted({asked.category for asked in self.questions})


def read_set(file: Path) -> DataSet:
    """Every conversation of a file with the questions that have an answer in it.

    The file is LoCoMo's, or an object with `name`, `unit` (`message` or `session`) and
    `conversations`, each with an `id`, `messages` (`id`, `session`, `author`, `date`, `text`) and
    `questions` (`question`, `evidence`, `category`). Raises ChatError.
    """
    try:
        content = file.read_bytes()
        told = json.loads(content)
        if isinstance(told, dict):
            by_session = told["unit"] == "session"
            chats = [_collection(one, by_session=by_session) for one in told["conversations"]]
            return DataSet(name=told["name"], chats=chats)
        messages = read_messages(content, file.stem)
        return DataSet(name=file.stem, chats=[_chat(one, messages) for one in told])
    except OSError as error:
        raise ChatError(f"{file} cannot be read: {error.strerror}") from error
    except ConfigurationError as error:
        raise ChatError(f"{file}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ChatError(f"{file} is in no known form: {error!r}") from error


def _collection(told: dict[str, Any], *, by_session: bool) -> Chat:
    agent = re.sub(r"[^\w.-]", "-", told["id"])
    units = {one["id"]: one["session"] for one in told["messages"]} if by_session else {}
    questions = [
        Asked(
            agent=agent,
            text=asked["question"],
            category=str(asked["category"]),
            gold=frozenset(units.get(one, one) for one in asked["evidence"]),
        )
        for asked in told["questions"]
        if asked["evidence"]
    ]
    entries = [_memory(one, agent) for one in told["messages"]]
    return Chat(agent=agent, entries=entries, questions=questions, units=units)


def _memory(told: dict[str, Any], agent: str) -> dict[str, Any]:
    """A message of a session in its order, or a document of a collection without one."""
    value = {name: told[name] for name in ("text", "author", "date") if told[name] is not None}
    entry = {"namespace": f"memories/{agent}", "key": told["id"], "value": value}
    if told["session"] is None:
        return {**entry, "memory_type": "semantic"}
    scope = {"session_id": told["session"]}
    return {**entry, "memory_type": "session", "scope": scope}


def _chat(told: dict[str, Any], messages: Iterable[Message]) -> Chat:
    agent = told["sample_id"]
    entries = [_entry(message) for message in messages if message.chat == agent]
    there = {entry["key"] for entry in entries}
    questions = []
    for asked in told["qa"]:
        if asked["category"] in _CATEGORIES:
            gold = {turn for text in asked["evidence"] for turn in _TURN.findall(text)}
            if gold:
                questions.append(
                    Asked(
                        agent=agent,
                        text=asked["question"],
                        category=_CATEGORIES[asked["category"]],
                        # What was never said cannot be found, and counts as missed.
                        gold=frozenset(gold),
                    )
                )
    if not any(one.gold & there for one in questions):
        raise ValueError(f"{agent}: no question's evidence is among the turns")
    return Chat(agent=agent, entries=entries, questions=questions)


def _entry(message: Message) -> dict[str, Any]:
    """The body with which an import of a chat creates a message."""
    return {
        "namespace": f"chat/{message.chat}",
        "key": message.key,
        "value": message.value,
        "memory_type": "session",
        "scope": {"session_id": message.session},
    }
