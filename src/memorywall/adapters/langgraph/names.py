"""Names of the saved states of a thread.

The states of a checkpoint stand together, in the order of checkpoints of a namespace: first the
writes, then the checkpoint, so that the last name of a namespace is that of its newest checkpoint.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote, unquote

_SEPARATOR = "!"
_PAST_SEPARATOR = '"'
"""Sorts directly after the separator, which sorts before all other characters of the names."""
_CHECKPOINT = "1"
_WRITES = "0"
_DIGEST_BYTES = 10


class Range(NamedTuple):
    """Names between two names without both."""

    after: str
    before: str


class StateName(NamedTuple):
    """What the name of a saved state says.

    is_checkpoint: false for writes of a task
    """

    place: str
    checkpoint_id: str
    is_checkpoint: bool


def place_of(namespace: str) -> str:
    """The beginning of the names of a checkpoint namespace, whose own name may be long."""
    return blake2b(namespace.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def name_checkpoint(place: str, checkpoint_id: str) -> str:
    """The name of a checkpoint."""
    return f"{place}{_SEPARATOR}{_quoted(checkpoint_id)}{_SEPARATOR}{_CHECKPOINT}"


def name_writes(place: str, checkpoint_id: str, task_id: str, position: str) -> str:
    """The name of writes of a task.

    position: that of the first of them among the writes of the task, or that of a special one
    """
    parts = (place, _quoted(checkpoint_id), f"{_WRITES}{_quoted(task_id)}", position)
    return _SEPARATOR.join(parts)


def read_name(name: str) -> StateName:
    """The parts of a name."""
    place, checkpoint_id, rest = name.split(_SEPARATOR, 2)
    return StateName(place, unquote(checkpoint_id), rest == _CHECKPOINT)


def all_of_place(place: str) -> Range:
    """The names of a namespace."""
    return Range(f"{place}{_SEPARATOR}", f"{place}{_PAST_SEPARATOR}")


def all_of_checkpoint(place: str, checkpoint_id: str) -> Range:
    """The names of a checkpoint and of its writes."""
    begin = f"{place}{_SEPARATOR}{_quoted(checkpoint_id)}"
    return Range(f"{begin}{_SEPARATOR}", f"{begin}{_PAST_SEPARATOR}")


def writes_of_checkpoint(place: str, checkpoint_id: str) -> Range:
    """The names of the writes of a checkpoint."""
    begin = f"{place}{_SEPARATOR}{_quoted(checkpoint_id)}{_SEPARATOR}"
    return Range(f"{begin}{_WRITES}", f"{begin}{_CHECKPOINT}")


def before_checkpoint(place: str, checkpoint_id: str) -> Range:
    """The names of the checkpoints of a namespace with smaller ids."""
    every = all_of_place(place)
    return Range(every.after, f"{place}{_SEPARATOR}{_quoted(checkpoint_id)}{_SEPARATOR}")


def _quoted(text: str) -> str:
    return quote(text, safe="")
