"""LangGraph's checkpointer: each thread is a session, each checkpoint a saved state."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from memorywall.adapters.client_runner import ClientRunner, both_ways
from memorywall.adapters.langgraph.checkpoint_core import CheckpointCore
from memorywall.adapters.langgraph.reading import ChannelWalk, WantedCheckpoints, namespace_of
from memorywall.adapters.langgraph.thread_checkpoint import StoredWrite, ThreadCheckpoint
from memorywall.adapters.named_sessions import SessionKey
from memorywall.exceptions import ValidationError
from memorywall.sdk.effects import RequestGenerator as Script

if TYPE_CHECKING:
    from memorywall.sdk.client import AsyncClient, Client


class MemorywallSaver(BaseCheckpointSaver[int]):
    """A checkpointer that keeps the threads of a graph in sessions of memorywall.

    client: a client of a server or of a store in this process. Blocking and asynchronous methods
        work with either colour; with a `Client` the asynchronous ones run in threads. One of
        `client.for_user(user)` keeps threads of this person only.
    user_key: the name of the person in the `configurable` of a graph's config, such as "user_id".
        The threads of a person are then about the person: requests about them are bound to the
        person, and `client.forget(user)` erases them. Default: threads are about nobody, or about
        the person of the client.
    serde: the serializer of values; default: that of LangGraph
    client, core: what the interface cannot say is reached through `client`
    """

    def __init__(
        self,
        client: Client | AsyncClient,
        *,
        user_key: str | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self.client = client
        self.core = CheckpointCore(has_users=user_key is not None, now=lambda: datetime.now(UTC))
        self._user_key = user_key
        self.runner = ClientRunner(client)

    def setup(self) -> None:
        """Does nothing: the server, or the client of a directory, has made the store."""

    def _get_tuple(self, config: RunnableConfig) -> Script[CheckpointTuple | None]:
        """Returns the checkpoint that a config names, or the newest one of its namespace."""
        key = self._key(config)
        found = yield from self.core.get(key, namespace_of(config), get_checkpoint_id(config))
        return None if found is None else self._as_tuple(config, found)

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Script[RunnableConfig]:
        """Saves a checkpoint and returns the config that names it."""
        made = self._made(config, checkpoint, metadata)
        yield from self.core.put(self._key(config), made)
        return self._config(config, made.namespace, made.checkpoint_id)

    def _put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> Script[None]:
        """Saves the writes of a task that belong to a checkpoint."""
        made = [
            StoredWrite(
                task_path,
                task_id,
                WRITES_IDX_MAP.get(channel, place),
                channel,
                *self.serde.dumps_typed(value),
            )
            for place, (channel, value) in enumerate(writes)
        ]
        checkpoint_id = str(config["configurable"]["checkpoint_id"])
        return self.core.put_writes(self._key(config), namespace_of(config), checkpoint_id, made)

    def _delete_thread(self, thread_id: str) -> Script[None]:
        """Deletes a thread with all its checkpoints and writes."""
        return self.core.delete_thread(str(thread_id))

    def _delete_for_runs(self, run_ids: Sequence[str]) -> Script[None]:
        """Deletes the checkpoints of runs with their writes, also those that delta channels of
        later checkpoints need."""
        return self.core.delete_for_runs(run_ids)

    def _copy_thread(self, source_thread_id: str, target_thread_id: str) -> Script[None]:
        """Copies all checkpoints and writes of a thread to another thread. With a `user_key`, copy
        with a checkpointer over `client.for_user(user)`."""
        source, target = SessionKey(str(source_thread_id)), SessionKey(str(target_thread_id))
        return self.core.copy_thread(source, target)

    def _prune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: str = "keep_latest",
        older_than: timedelta | None = None,
    ) -> Script[None]:
        """Deletes checkpoints of threads, with their writes.

        strategy: `keep_latest` keeps the newest checkpoint of each namespace, and the ancestors
            with the writes of its delta channels; `delete` deletes the threads
        older_than: with `keep_latest`, deletes only what was saved longer ago; default: all
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValidationError("`strategy` must be `keep_latest` or `delete`")
        for thread_id in map(str, thread_ids):
            if strategy == "delete":
                yield from self.core.delete_thread(thread_id)
            else:
                yield from self.core.prune(thread_id, self._channels, older_than=older_than)

    def _expire(self, age: timedelta) -> Script[None]:
        """Deletes the threads that nothing was saved in for this long, and of the others the
        checkpoints that are older, except those that `prune` would keep."""
        return self.core.expire(age, self._channels)

    def _get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Script[Mapping[str, DeltaChannelHistory]]:
        """Returns what the ancestors of a checkpoint have written to channels; see the base
        class."""
        if not channels:
            return {}
        walk = ChannelWalk(self._checkpoint, self._value, channels)
        place = namespace_of(config), get_checkpoint_id(config)
        return walk.result((yield from self.core.history(self._key(config), *place, walk.is_done)))

    get_tuple, aget_tuple = both_ways(_get_tuple)
    put, aput = both_ways(_put)
    put_writes, aput_writes = both_ways(_put_writes)
    delete_thread, adelete_thread = both_ways(_delete_thread)
    delete_for_runs, adelete_for_runs = both_ways(_delete_for_runs)
    copy_thread, acopy_thread = both_ways(_copy_thread)
    prune, aprune = both_ways(_prune)
    expire, aexpire = both_ways(_expire)
    get_delta_channel_history, aget_delta_channel_history = both_ways(_get_delta_channel_history)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Iterates over checkpoints, newest first; see the base class.

        config: without a `checkpoint_ns` the checkpoints of all namespaces; None for all threads
        """
        wanted = WantedCheckpoints(filter, before, limit)
        if config is None or "checkpoint_ns" not in config["configurable"]:
            yield from self._all(config, wanted, self.runner.run(self._load_all(config)))
            return
        key, names = self._key(config), wanted.names(config)
        while names is not None and not wanted.is_full:
            script = self.core.list_page(key, names, wanted.page_size)
            checkpoints, names = self.runner.run(script, key.user)
            yield from self._chosen(config, wanted, checkpoints)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        wanted = WantedCheckpoints(filter, before, limit)
        if config is None or "checkpoint_ns" not in config["configurable"]:
            every = await self.runner.await_(self._load_all(config))
            for found in self._all(config, wanted, every):
                yield found
            return
        key, names = self._key(config), wanted.names(config)
        while names is not None and not wanted.is_full:
            script = self.core.list_page(key, names, wanted.page_size)
            checkpoints, names = await self.runner.await_(script, key.user)
            for found in self._chosen(config, wanted, checkpoints):
                yield found

    def user_of(
        self, *args: Any, config: RunnableConfig | None = None, **options: Any
    ) -> str | None:
        """Returns the person that a call is bound to: that of its config, if it has one."""
        given = config or next(iter(args), None)
        if self._user_key is None or not isinstance(given, dict):
            return None
        user = given["configurable"].get(self._user_key)
        return None if user is None else str(user)

    def _load_all(
        self, config: RunnableConfig | None
    ) -> Script[builtins.list[tuple[str, ThreadCheckpoint]]]:
        return self.core.list_all(None if config is None else self._key(config).name)

    def _all(
        self,
        config: RunnableConfig | None,
        wanted: WantedCheckpoints,
        every: Sequence[tuple[str, ThreadCheckpoint]],
    ) -> Iterator[CheckpointTuple]:
        checkpoint_id = None if config is None else get_checkpoint_id(config)
        for thread_id, stored in every:
            if checkpoint_id in (None, stored.checkpoint_id):
                own: RunnableConfig = {"configurable": {"thread_id": thread_id}}
                yield from self._chosen(config or own, wanted, [stored])

    def _chosen(
        self,
        config: RunnableConfig,
        wanted: WantedCheckpoints,
        checkpoints: Sequence[ThreadCheckpoint],
    ) -> Iterator[CheckpointTuple]:
        for stored in checkpoints:
            if wanted.takes(stored):
                yield self._as_tuple(config, stored)

    def _as_tuple(self, config: RunnableConfig, stored: ThreadCheckpoint) -> CheckpointTuple:
        parent = stored.parent_id
        return CheckpointTuple(
            config=self._config(config, stored.namespace, stored.checkpoint_id),
            checkpoint=self._checkpoint(stored),
            metadata=cast(CheckpointMetadata, stored.metadata),
            parent_config=None
            if parent is None
            else self._config(config, stored.namespace, parent),
            pending_writes=[
                (one.task_id, one.channel, self._value(one.type, one.data)) for one in stored.writes
            ],
        )

    def _value(self, type_: str, data: bytes) -> Any:
        return self.serde.loads_typed((type_, data))

    def _checkpoint(self, stored: ThreadCheckpoint) -> Checkpoint:
        return cast(Checkpoint, self._value(stored.type, stored.data))

    def _channels(self, stored: ThreadCheckpoint) -> Collection[str]:
        return self._checkpoint(stored)["channel_values"]

    def _made(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> ThreadCheckpoint:
        kind, data = self.serde.dumps_typed(checkpoint)
        parent = get_checkpoint_id(config)
        return ThreadCheckpoint(
            namespace=namespace_of(config),
            checkpoint_id=checkpoint["id"],
            parent_id=None if parent is None else str(parent),
            metadata=dict(get_serializable_checkpoint_metadata(config, metadata)),
            type=kind,
            data=data,
        )

    def _key(self, config: RunnableConfig) -> SessionKey:
        given = config["configurable"]
        if given.get("thread_id") is None:
            raise ValidationError("`configurable` needs the `thread_id` of a thread")
        return SessionKey(str(given["thread_id"]), self.user_of(config))

    def _config(self, config: RunnableConfig, namespace: str, checkpoint_id: str) -> RunnableConfig:
        given = config["configurable"]
        named = {
            "thread_id": given["thread_id"],
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
        if self._user_key is not None and self._user_key in given:
            named[self._user_key] = given[self._user_key]
        return {"configurable": named}
