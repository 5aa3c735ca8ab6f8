"""What a checkpointer reads: the checkpoints of a list, and the history of channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    Checkpoint,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
)

from memorywall.adapters.langgraph.names import (
    Range,
    all_of_checkpoint,
    all_of_place,
    before_checkpoint,
    place_of,
)
from memorywall.adapters.langgraph.thread_checkpoint import ThreadCheckpoint

_MOST_IN_PAGE = 100
_STATES_OF_CHECKPOINT = 4
"""The saved states that a usual checkpoint and its writes are together."""


class WantedCheckpoints:
    """What a list takes.

    filter: values of the metadata; before: the config of a checkpoint with a greater id
    """

    def __init__(
        self,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        self._filter = filter or {}
        self._before = None if before is None else get_checkpoint_id(before)
        self._left = limit

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self._left is not None and self._left <= 0

    @property
    def page_size(self) -> int:
        """The saved states to read at once."""
        if self._left is None or self._filter:
            return _MOST_IN_PAGE
        return min(_MOST_IN_PAGE, _STATES_OF_CHECKPOINT * self._left)

    def names(self, config: RunnableConfig) -> Range | None:
        """The names of the saved states among which the wanted ones are."""
        place, checkpoint_id = place_of(namespace_of(config)), get_checkpoint_id(config)
        if checkpoint_id is not None:
            return all_of_checkpoint(place, checkpoint_id)
        return (
            all_of_place(place) if self._before is None else before_checkpoint(place, self._before)
        )

    def takes(self, stored: ThreadCheckpoint) -> bool:
        """Whether a checkpoint belongs to the list, which counts it."""
        if self.is_full or (self._before is not None and stored.checkpoint_id >= self._before):
            return False
        if any(stored.metadata.get(name) != one for name, one in self._filter.items()):
            return False
        if self._left is not None:
            self._left -= 1
        return True


class ChannelWalk:
    """The walk from a checkpoint through its ancestors to the last values of channels.

    read_checkpoint, load_value: of the serializer
    """

    def __init__(
        self,
        read_checkpoint: Callable[[ThreadCheckpoint], Checkpoint],
        load_value: Callable[[str, bytes], Any],
        channels: Sequence[str],
    ) -> None:
        self._read_checkpoint = read_checkpoint
        self._load_value = load_value
        self._channels = channels
        self._missing = set(channels)
        self._seeds: dict[str, tuple[int, Any]] = {}
        self._passed = 0

    def is_done(self, ancestor: ThreadCheckpoint) -> bool:
        """Notes the values of an ancestor; returns whether no channel is missing."""
        values = self._read_checkpoint(ancestor)["channel_values"]
        for channel in self._missing & values.keys():
            self._seeds[channel] = (self._passed, values[channel])
            self._missing.discard(channel)
        self._passed += 1
        return not self._missing

    def result(self, ancestors: Sequence[ThreadCheckpoint]) -> dict[str, DeltaChannelHistory]:
        """Returns the value and the writes of each channel, oldest first.

        ancestors: those that the walk has passed, nearest first
        """
        found: dict[str, DeltaChannelHistory] = {}
        for channel in self._channels:
            last, _ = self._seeds.get(channel, (len(ancestors), None))
            writes: list[PendingWrite] = [
                (one.task_id, one.channel, self._load_value(one.type, one.data))
                for ancestor in reversed(ancestors[: last + 1])
                for one in ancestor.writes
                if one.channel == channel
            ]
            found[channel] = {"writes": writes}
            if channel in self._seeds:
                found[channel]["seed"] = self._seeds[channel][1]
        return found


def namespace_of(config: RunnableConfig) -> str:
    """The checkpoint namespace of a config."""
    return str(config["configurable"].get("checkpoint_ns") or "")
