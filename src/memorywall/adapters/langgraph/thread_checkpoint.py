"""Checkpoints and their writes as saved states of a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from memorywall.adapters.langgraph.names import name_checkpoint, place_of, read_name
from memorywall.wire.turns import SavedStateResponse

FIRST_PLACE = 0
"""The places of writes to special channels, such as interrupts, are smaller."""


class StoredWrite(NamedTuple):
    """A write of a task that belongs to a checkpoint.

    The order of the fields up to `place` is the order in which writes are applied.

    place: that among the writes of the task; negative for a special channel
    type, data: the value, as the serializer of the saver returns it
    """

    task_path: str
    task_id: str
    place: int
    channel: str
    type: str
    data: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadCheckpoint:
    """A checkpoint.

    type, data: the checkpoint, as the serializer of the saver returns it
    writes: its writes, in the order in which they are applied
    """

    namespace: str
    checkpoint_id: str
    parent_id: str | None
    metadata: dict[str, Any]
    type: str
    data: bytes
    created_at: str = ""
    writes: tuple[StoredWrite, ...] = ()

    @property
    def name(self) -> str:
        """The name of its saved state."""
        return name_checkpoint(place_of(self.namespace), self.checkpoint_id)

    def as_state(self) -> dict[str, Any]:
        """The arguments of `put_saved_state`."""
        parent = self.parent_id
        return {
            "name": self.name,
            "data": self.data,
            "parent": parent and name_checkpoint(place_of(self.namespace), parent),
            "metadata": {
                "namespace": self.namespace,
                "type": self.type,
                "metadata": self.metadata,
            },
        }


_writes = msgspec.msgpack.Decoder(list[StoredWrite])


def encode_writes(writes: Sequence[StoredWrite]) -> bytes:
    """Returns writes as the data of a saved state."""
    return msgspec.msgpack.encode(writes)


def decode_writes(data: bytes | None) -> list[StoredWrite]:
    """Returns the writes of a saved state."""
    return _writes.decode(data or b"\x90")


def join_checkpoints(states: Iterable[SavedStateResponse]) -> list[ThreadCheckpoint]:
    """Returns the checkpoints of saved states with their writes, in the order of the states. Writes
    whose checkpoint is not among the states are left out: it may be saved after them.

    states: in the reverse order of their names
    """
    checkpoints: dict[tuple[str, str], SavedStateResponse] = {}
    saved: dict[tuple[str, str], dict[tuple[str, int], StoredWrite]] = {}
    alone: dict[tuple[str, str], dict[tuple[str, int], StoredWrite]] = {}
    for state in states:
        name = read_name(state.name)
        key = (name.place, name.checkpoint_id)
        if name.is_checkpoint:
            checkpoints[key] = state
            continue
        writes = decode_writes(state.data)
        # Of the same place, those of the first call count, which come last, or a special one that
        # was saved alone.
        is_alone = len(writes) == 1 and state.name.endswith(f"!{writes[0].place}")
        own = (alone if is_alone else saved).setdefault(key, {})
        own |= {(one.task_id, one.place): one for one in writes}
    return [
        _checkpoint(state, key[1], {**saved.get(key, {}), **alone.get(key, {})}.values())
        for key, state in checkpoints.items()
    ]


def _checkpoint(
    state: SavedStateResponse, checkpoint_id: str, writes: Iterable[StoredWrite]
) -> ThreadCheckpoint:
    said = state.metadata
    return ThreadCheckpoint(
        namespace=said["namespace"],
        checkpoint_id=checkpoint_id,
        parent_id=None if state.parent is None else read_name(state.parent).checkpoint_id,
        metadata=said["metadata"],
        type=said["type"],
        data=state.data or b"",
        created_at=state.created_at,
        writes=tuple(sorted(writes, key=lambda one: one[:3])),
    )
