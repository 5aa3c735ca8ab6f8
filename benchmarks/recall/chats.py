"""The data sets of the benchmark: entries, questions, and the entries that answer them."""

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
_FIELDS = (
    "text",
    "author",
    "date",
    "subject",
    "relation",
    "object",
    "name",
    "aliases",
    "valid_until",
)
_TURN = re.compile(r"D\d+:\d+")


class ChatError(Exception):
    """The file holds no data set in a known form."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceQuestion:
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
    questions: list[EvidenceQuestion]
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
    def questions(self) -> list[EvidenceQuestion]:
        """All questions, in the order of the conversations."""
        return [question for chat in self.chats for question in chat.questions]

    @property
    def categories(self) -> Sequence[str]:
        """The categories of its questions."""
        return sorted({question.category for question in self.questions})


def read_set(file: Path) -> DataSet:
    """Every conversation of a file with the questions that have an answer in it.

    The file is LoCoMo's, or an object with `name`, `unit` (`message` or `session`) and
    `conversations`, each with an `id`, `messages` (`id`, `session`, `author`, `date`, `text`; a
    fact has `subject`, `relation` and `object`, too, and a thing with several names `name` and
    `aliases`) and `questions` (`question`, `evidence`, `category`). Raises ChatError.
    """
    try:
        data = file.read_bytes()
        content = json.loads(data)
        if isinstance(content, dict):
            by_session = content["unit"] == "session"
            chats = [_collection(one, by_session=by_session) for one in content["conversations"]]
            return DataSet(name=content["name"], chats=chats)
        messages = read_messages(data, file.stem)
        return DataSet(name=file.stem, chats=[_chat(one, messages) for one in content])
    except OSError as error:
        raise ChatError(f"{file} cannot be read: {error.strerror}") from error
    except ConfigurationError as error:
        raise ChatError(f"{file}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ChatError(f"{file} is in no known form: {error!r}") from error


def _collection(content: dict[str, Any], *, by_session: bool) -> Chat:
    agent = re.sub(r"[^\w.-]", "-", content["id"])
    units = {one["id"]: one["session"] for one in content["messages"]} if by_session else {}
    questions = [
        EvidenceQuestion(
            agent=agent,
            text=question["question"],
            category=str(question["category"]),
            gold=frozenset(units.get(one, one) for one in question["evidence"]),
        )
        for question in content["questions"]
        if question["evidence"]
    ]
    entries = [_memory(one, agent) for one in content["messages"]]
    return Chat(agent=agent, entries=entries, questions=questions, units=units)


def _memory(content: dict[str, Any], agent: str) -> dict[str, Any]:
    """A message of a session in its order, or a document of a collection without one."""
    value = {name: content[name] for name in _FIELDS if content.get(name) is not None}
    entry = {"namespace": f"memories/{agent}", "key": content["id"], "value": value}
    if content["session"] is None:
        return {**entry, "memory_type": "semantic"}
    scope = {"session_id": content["session"]}
    return {**entry, "memory_type": "session", "scope": scope}


def _chat(content: dict[str, Any], messages: Iterable[Message]) -> Chat:
    agent = content["sample_id"]
    entries = [_entry(message) for message in messages if message.chat == agent]
    keys = {entry["key"] for entry in entries}
    questions = []
    for question in content["qa"]:
        if question["category"] in _CATEGORIES:
            gold = {turn for text in question["evidence"] for turn in _TURN.findall(text)}
            if gold:
                questions.append(
                    EvidenceQuestion(
                        agent=agent,
                        text=question["question"],
                        category=_CATEGORIES[question["category"]],
                        # A turn that is not in the file cannot be found and counts as missed.
                        gold=frozenset(gold),
                    )
                )
    if not any(one.gold & keys for one in questions):
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
