"""`wait_for="indexed"` of the SDK: which requests carry it, and what a caller gets."""

from __future__ import annotations

from typing import Any

import pytest

from memorywall.exceptions import EntryNotIndexedError
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import Request, Response
from memorywall.sdk.indexing import may_wait
from memorywall.sdk.put import PutCore
from memorywall.sdk.retry import call
from memorywall.wire.entries import DeletedResponse
from tests.test_sdk_support import World, fresh, server, world

pytestmark = pytest.mark.anyio
__all__ = ["server", "world"]


def _first_write(steps: Any) -> Request:
    """The first request of a generator; reads before it find nothing."""
    step = next(steps)
    while step.operation not in ("create_entry", "put_entry", "write_batch"):
        step = steps.send(Response(200, b'{"entry":null}'))
    assert isinstance(step, Request)
    return step


def test_writes_carry_the_wait_and_nothing_else_does() -> None:
    core = PutCore(ClientState(agent="a", task_id=None))
    wait: Any = {"wait_for": "indexed"}
    element = {"namespace": "n", "key": "k", "value": {}, "memory_type": "working"}
    for steps in (
        core.set("n", "k", {}, **wait),
        core.put("n", "k", {}, "working", **wait),
        core.batch([element], **wait),
    ):
        assert _first_write(steps).query == wait
    assert _first_write(core.set("n", "k", {})).query == {}
    assert "wait_for" not in _first_write(core.set("n", "k", {}, **wait)).body


def test_other_requests_and_errors_pass_unchanged() -> None:
    @may_wait
    def steps(*, wait_for: str | None = None) -> Any:
        assert wait_for is None
        try:
            yield from call("get_entry", DeletedResponse, entry_id="x")
        except EntryNotIndexedError as error:
            return error.backlog
        return 0

    running = steps(wait_for="indexed")
    assert next(running).query == {}
    with pytest.raises(StopIteration) as ended:
        running.throw(EntryNotIndexedError(backlog=7))
    assert ended.value.value == 7


async def test_written_entry_is_returned_and_found(world: World) -> None:
    client = world.client(fresh("billing"))
    made = await client.memory.set("notes", "a", {"text": "parcel"}, "episodic", wait_for="indexed")
    changed = await client.memory.put(
        "notes", "a", {"text": "parcel!"}, "episodic", wait_for="indexed"
    )
    assert (made.version, changed.version) == (1, 2)
    found = await client.memory.search("parcel")
    assert [hit.entry for hit in found] == [changed]
    assert (found.searched, found.pending) == (1, 0)
