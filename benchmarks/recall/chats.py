"""The conversations whose questions are asked: what goes into memory, and where the answers lie."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memorywall.cli.chat_files import Message
from memorywall.cli.chat_files import read_chats as read_messages
from memorywall.records.errors import ConfigurationError

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop"}
"""Of the questions that are asked; the others have no answer in their conversation."""
_TURN = re.compile(r"D\d+:\d+")


class ChatError(Exception):
    """The file does not hold conversations in the form of LoCoMo."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question, and the keys of all entries that hold a part of its answer."""

    agent: str
    text: str
    category: int
    gold: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chat:
    """A conversation as one agent remembers it: the bodies of its entries, in order."""

    agent: str
    entries: list[dict[str, Any]]
    questions: list[Asked]


def read_chats(file: Path) -> list[Chat]:
    """Every conversation of a LoCoMo file, with the questions that have an answer in it."""
    try:
        content = file.read_bytes()
        messages = read_messages(content, file.stem)
        told = json.loads(content)
        return [_chat(one, messages) for one in told]
    except OSError as error:
        raise ChatError(f"{file} cannot be read: {error.strerror}") from error
    except ConfigurationError as error:
        raise ChatError(f"{file}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ChatError(f"{file} is not in the form of LoCoMo: {error!r}") from error


def _chat(told: dict[str, Any], messages: Iterable[Message]) -> Chat:
    agent = told["sample_id"]
    entries = [_entry(message) for message in messages if message.chat == agent]
    there = {entry["key"] for entry in entries}
    questions = []
    for asked in told["qa"]:
        if asked["category"] in CATEGORIES:
            gold = {turn for text in asked["evidence"] for turn in _TURN.findall(text)}
            if gold:
                questions.append(
                    Asked(
                        agent=agent,
                        text=asked["question"],
                        category=asked["category"],
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
