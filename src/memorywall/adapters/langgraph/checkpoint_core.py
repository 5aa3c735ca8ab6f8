"""The operations of a checkpointer on stored checkpoints, as request generators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import NamedTuple

from memorywall.adapters.langgraph.names import (
    Range,
    StateName,
    all_of_checkpoint,
    all_of_place,
    before_checkpoint,
    name_writes,
    place_of,
    read_name,
    writes_of_checkpoint,
)
from memorywall.adapters.langgraph.thread_checkpoint import (
    FIRST_PLACE,
    StoredWrite,
    ThreadCheckpoint,
    decode_writes,
    encode_writes,
    join_checkpoints,
)
from memorywall.adapters.named_sessions import NamedSessions, SessionKey
from memorywall.exceptions import ResourceConflictError, ResourceNotFoundError
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.session import SessionCore
from memorywall.wire.turns import SavedStateResponse

_PAGE = 100
_DELTA_COUNTERS = "counters_since_delta_snapshot"
ReadChannels = Callable[[ThreadCheckpoint], Collection[str]]
"""Returns the names of the channels whose values a checkpoint has."""
IsDone = Callable[[ThreadCheckpoint], bool]
"""Returns whether no further ancestors of a checkpoint are wanted."""


class Page(NamedTuple):
    """Checkpoints of a namespace, newest first.

    following: the names of the next page; None after the last page
    """

    checkpoints: list[ThreadCheckpoint]
    following: Range | None


class CheckpointCore:
    """Reads, writes and prunes the checkpoints of threads.

    has_users: see `NamedSessions`
    now: returns the present instant, from which ages count
    """

    def __init__(self, *, has_users: bool, now: Callable[[], datetime]) -> None:
        self.threads = NamedSessions("langgraph", has_users=has_users)
        self._now = now

    def put(self, key: SessionKey, checkpoint: ThreadCheckpoint) -> RequestGenerator[None]:
        """Saves a checkpoint; one of this id is replaced, and its writes stay."""

        def save(session: SessionCore) -> RequestGenerator[None]:
            yield from session.put_saved_state(**checkpoint.as_state())

        return self.threads.write(key, save)

    def put_writes(
        self, key: SessionKey, namespace: str, checkpoint_id: str, writes: Sequence[StoredWrite]
    ) -> RequestGenerator[None]:
        """Saves the writes of a task. Special writes replace those of their place, others leave
        what is there, so that a repeated task changes nothing."""
        place = place_of(namespace)

        def save(session: SessionCore) -> RequestGenerator[None]:
            if all(one.place < FIRST_PLACE for one in writes):
                for one in writes:
                    name = name_writes(place, checkpoint_id, one.task_id, str(one.place))
                    yield from session.put_saved_state(name, encode_writes([one]))
                return
            position = 0
            while position < len(writes):
                left = writes[position:]
                name = name_writes(place, checkpoint_id, left[0].task_id, f"{position:06d}")
                try:
                    yield from session.put_saved_state(name, encode_writes(left), if_absent=True)
                except ResourceConflictError:
                    # An earlier call has saved some of them; what it did not have follows.
                    found = yield from session.get_saved_state(name)
                    position += len(decode_writes(found.data))
                else:
                    return

        return self.threads.write(key, save)

    def get(
        self, key: SessionKey, namespace: str, checkpoint_id: str | None
    ) -> RequestGenerator[ThreadCheckpoint | None]:
        """Returns a checkpoint with its writes, None without one.

        checkpoint_id: None for the newest one
        """

        def load(session: SessionCore) -> RequestGenerator[ThreadCheckpoint | None]:
            return _load(session, place_of(namespace), checkpoint_id)

        return self.threads.read(key, load)

    def list_page(
        self, key: SessionKey, names: Range, limit: int = _PAGE
    ) -> RequestGenerator[Page]:
        """Returns checkpoints among saved states with these names.

        limit: the most saved states of the page, up to 100, besides those that its last checkpoint
            needs
        """

        def load(session: SessionCore) -> RequestGenerator[Page]:
            return _load_page(session, names, min(limit, _PAGE))

        return (yield from self.threads.read(key, load)) or Page([], None)

    def list_all(
        self, thread_id: str | None
    ) -> RequestGenerator[list[tuple[str, ThreadCheckpoint]]]:
        """Returns all checkpoints of threads with the ids of their threads, the greatest ids of
        checkpoints first.

        thread_id: only those of this thread; None for all
        """
        threads = self.threads.all() if thread_id is None else self.threads.named(thread_id)
        found: list[tuple[str, ThreadCheckpoint]] = []
        for session in (yield from threads):
            states = yield from _load_states(session, Range("", ""), with_data=True)
            found += [(session.info.client_id or "", one) for one in join_checkpoints(states)]
        return sorted(found, key=lambda one: one[1].checkpoint_id, reverse=True)

    def history(
        self, key: SessionKey, namespace: str, checkpoint_id: str | None, is_done: IsDone
    ) -> RequestGenerator[list[ThreadCheckpoint]]:
        """Returns the ancestors of a checkpoint, nearest first, up to the first with which
        `is_done` is true."""

        def load(session: SessionCore) -> RequestGenerator[list[ThreadCheckpoint]]:
            target = yield from _load(session, place_of(namespace), checkpoint_id)
            return [] if target is None else (yield from _load_ancestors(session, target, is_done))

        return (yield from self.threads.read(key, load)) or []

    def delete_thread(self, thread_id: str) -> RequestGenerator[None]:
        """Deletes a thread, that of every person who has one of this name."""
        for session in (yield from self.threads.named(thread_id)):
            yield from self.threads.delete(session)

    def delete_for_runs(self, run_ids: Collection[str]) -> RequestGenerator[None]:
        """Deletes the checkpoints of runs, with their writes, in all threads."""
        wanted = set(run_ids)
        for session in (yield from self.threads.all()) if wanted else ():
            states = yield from _load_states(session, Range("", ""))
            gone = {
                (read_name(one.name).place, read_name(one.name).checkpoint_id)
                for one in states
                if one.metadata.get("metadata", {}).get("run_id") in wanted
            }
            yield from _remove(session, states, partial(_is_of, gone))

    def copy_thread(self, source: SessionKey, target: SessionKey) -> RequestGenerator[None]:
        """Copies all checkpoints and writes of a thread to another one."""

        def load(session: SessionCore) -> RequestGenerator[list[SavedStateResponse]]:
            return _load_states(session, Range("", ""), with_data=True)

        states = (yield from self.threads.read(source, load)) or []
        for state in reversed(states):
            # Ancestors first: what is copied when this stops has all that it needs.
            yield from self.threads.write(target, partial(_copy_state, state))

    def prune(
        self,
        thread_id: str,
        read_channels: ReadChannels,
        *,
        older_than: timedelta | None = None,
    ) -> RequestGenerator[None]:
        """Deletes the checkpoints of a thread that none of its newest ones needs.

        older_than: only those that were saved longer ago; None for all
        """
        for session in (yield from self.threads.named(thread_id)):
            states = yield from _load_states(session, Range("", ""))
            yield from self._prune_session(session, states, read_channels, older_than)

    def expire(self, age: timedelta, read_channels: ReadChannels) -> RequestGenerator[None]:
        """Deletes the threads whose newest checkpoint is older, and of the others the older
        checkpoints that none of the newest ones needs."""
        for session in (yield from self.threads.all()):
            states = yield from _load_states(session, Range("", ""))
            newest = max((one.created_at for one in states), default=session.info.created_at)
            if self._is_older(newest, age):
                yield from self.threads.delete(session)
            else:
                yield from self._prune_session(session, states, read_channels, age)

    def _prune_session(
        self,
        session: SessionCore,
        states: Sequence[SavedStateResponse],
        read_channels: ReadChannels,
        older_than: timedelta | None,
    ) -> RequestGenerator[None]:
        for _, group in groupby(states, key=lambda one: read_name(one.name).place):
            of_place = list(group)
            heads = [one for one in of_place if read_name(one.name).is_checkpoint]
            if not heads:
                continue
            names = [read_name(one.name) for one in of_place]
            head = read_name(heads[0].name).checkpoint_id
            needed = yield from self._needed_of(session, heads[0], read_channels)
            needed |= {
                read_name(one.name).checkpoint_id
                for one in heads
                if older_than is not None and not self._is_older(one.created_at, older_than)
            }
            # Writes of a later checkpoint than the newest belong to one that is about to be saved.
            later = {name.checkpoint_id for name in names if name.checkpoint_id > head}
            yield from _remove(session, of_place, partial(_is_not_of, needed | later))

    def _needed_of(
        self, session: SessionCore, head: SavedStateResponse, read_channels: ReadChannels
    ) -> RequestGenerator[set[str]]:
        """Returns the ids of a checkpoint and of the ancestors whose writes the values of its delta
        channels are made of: back to the nearest snapshot of each."""
        name = read_name(head.name)
        found = {name.checkpoint_id}
        missing = set(head.metadata["metadata"].get(_DELTA_COUNTERS) or ())
        if not missing:
            return found
        target = yield from _load(session, name.place, name.checkpoint_id)
        if target is None:
            return found
        missing -= set(read_channels(target))

        def is_done(ancestor: ThreadCheckpoint) -> bool:
            missing.difference_update(read_channels(ancestor))
            return not missing

        if missing:
            ancestors = yield from _load_ancestors(session, target, is_done)
            found |= {one.checkpoint_id for one in ancestors}
        return found

    def _is_older(self, created_at: str, age: timedelta) -> bool:
        return datetime.fromisoformat(created_at) < self._now() - age


def _load(
    session: SessionCore, place: str, checkpoint_id: str | None
) -> RequestGenerator[ThreadCheckpoint | None]:
    """Returns a checkpoint, or the newest one of its namespace, with its writes; None without
    one."""
    if checkpoint_id is None:
        return (yield from _load_newest(session, place))
    states = yield from _load_states(
        session, all_of_checkpoint(place, checkpoint_id), with_data=True
    )
    return next(iter(join_checkpoints(states)), None)


def _load_newest(session: SessionCore, place: str) -> RequestGenerator[ThreadCheckpoint | None]:
    names = all_of_place(place)
    while True:
        page = yield from session.list_saved_states(
            after=names.after, before=names.before, limit=1, with_data=True
        )
        if not page.saved_states:
            return None
        newest = page.saved_states[0]
        name = read_name(newest.name)
        if name.is_checkpoint:
            wanted = writes_of_checkpoint(place, name.checkpoint_id)
            writes = yield from _load_states(session, wanted, with_data=True)
            return join_checkpoints([newest, *writes])[0]
        # Writes whose checkpoint is not saved yet.
        names = before_checkpoint(place, name.checkpoint_id)


def _load_page(session: SessionCore, names: Range, limit: int) -> RequestGenerator[Page]:
    page = yield from session.list_saved_states(
        after=names.after or None, before=names.before or None, limit=limit, with_data=True
    )
    states = page.saved_states
    if page.next is None:
        return Page(join_checkpoints(states), None)
    last = read_name(states[-1].name)
    rest = Range(all_of_checkpoint(last.place, last.checkpoint_id).after, page.next)
    states += yield from _load_states(session, rest, with_data=True)
    following = Range(names.after, rest.after)
    return Page(join_checkpoints(states), following)


def _load_states(
    session: SessionCore, names: Range, *, with_data: bool = False
) -> RequestGenerator[list[SavedStateResponse]]:
    """Returns all saved states with these names, in the reverse order of their names; "" is no
    bound."""
    states: list[SavedStateResponse] = []
    before: str | None = names.before or None
    while True:
        page = yield from session.list_saved_states(
            after=names.after or None, before=before, limit=_PAGE, with_data=with_data
        )
        states += page.saved_states
        if page.next is None:
            return states
        before = page.next


def _load_ancestors(
    session: SessionCore, target: ThreadCheckpoint, is_done: IsDone
) -> RequestGenerator[list[ThreadCheckpoint]]:
    """Returns the ancestors of a checkpoint, nearest first, up to the first with which `is_done` is
    true. They are read in pages, because a parent is saved before its child and mostly next to it.
    """
    place = place_of(target.namespace)
    read: dict[str, ThreadCheckpoint] = {}
    following: Range | None = before_checkpoint(place, target.checkpoint_id)
    found: dict[str, ThreadCheckpoint] = {}
    wanted = target.parent_id
    # A parent that is among them already would lead back to itself.
    while wanted is not None and wanted not in found:
        while wanted not in read and following is not None:
            page = yield from _load_page(session, following, _PAGE)
            read |= {one.checkpoint_id: one for one in page.checkpoints}
            following = page.following
        ancestor = read.pop(wanted, None) or (yield from _load(session, place, wanted))
        if ancestor is None:
            break
        found[wanted] = ancestor
        if is_done(ancestor):
            break
        wanted = ancestor.parent_id
    return list(found.values())


def _remove(
    session: SessionCore, states: Sequence[SavedStateResponse], is_gone: Callable[[StateName], bool]
) -> RequestGenerator[None]:
    for state in states:
        if is_gone(read_name(state.name)):
            with suppress(ResourceNotFoundError):
                yield from session.delete_saved_state(state.name)


def _is_of(gone: Collection[tuple[str, str]], name: StateName) -> bool:
    return (name.place, name.checkpoint_id) in gone


def _is_not_of(needed: Collection[str], name: StateName) -> bool:
    return name.checkpoint_id not in needed


def _copy_state(state: SavedStateResponse, to: SessionCore) -> RequestGenerator[None]:
    yield from to.put_saved_state(
        state.name, state.data or b"", parent=state.parent, metadata=state.metadata
    )
