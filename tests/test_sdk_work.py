"""The SDK's operations on intents, tasks, coordinators and files: in both colours."""

from __future__ import annotations

from typing import Any

import pytest

from memorywall import Client
from memorywall.exceptions import (
    FencedError,
    LeaseHeldError,
    MemoryAccessError,
    MemoryNotFoundError,
    MemoryTransportError,
    ResourceConflictError,
    ResourceNotFoundError,
    TransitionError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.wire.events import EventData
from tests.support.process import ServerProcess
from tests.test_sdk_support import (
    Either,
    Faults,
    Faulty,
    World,
    faulty,
    fresh,
    held,
    server,
    take,
    world,
)

pytestmark = pytest.mark.anyio
__all__ = ["faulty", "server", "world"]


async def work(client: Either, **fields: Any) -> tuple[Any, Any]:
    """A new intent with a task."""
    intent = await client.intents.create("Close the quarter")
    return intent, await client.tasks.create(intent.id, "Reconcile", **fields)


async def test_an_intent_is_made_read_and_changed(world: World) -> None:
    client = world.client(fresh("lead"))
    made = await client.intents.create(
        "Close the quarter", description="Q3", state={"open": 3, "gone": 1}, constraints={"max": 5}
    )
    assert (made.version, made.status, made.constraints) == (1, "active", {"max": 5})
    changed = await client.intents.set_state(made, {"open": 2, "done": [1]}, remove=["gone"])
    assert (changed.version, changed.state) == (2, {"open": 2, "done": [1]})
    assert await client.intents.get(made.id) == changed
    with pytest.raises(ResourceConflictError) as raised:
        await client.intents.set_state(made, {"open": 9})
    assert raised.value.current_version == 2
    with pytest.raises(ResourceConflictError):
        await client.intents.set_status(made.id, "completed", version=1)
    ended = await client.intents.set_status(made.id, "completed", reason="all done")
    assert (ended.version, ended.status) == (3, "completed")
    page = await client.intents.list(status="completed", limit=1)
    assert ([one.id for one in page], page.limit, page.offset) == ([made.id], 1, 0)
    assert page.total >= 1
    assert made.id not in [one.id for one in await client.intents.list(status="active")]


async def test_intent_is_invisible_without_access(world: World) -> None:
    lead, other_name = world.client(fresh("lead")), fresh("other")
    other = world.client(other_name)
    intent = await lead.intents.create("Close the quarter")
    with pytest.raises(MemoryAccessError):
        await other.intents.get(intent.id)
    grant = await lead.intents.grant(intent.id, other_name, "read", reason="audit")
    assert (await other.intents.get(intent.id)).id == intent.id
    with pytest.raises(MemoryAccessError):
        await other.intents.set_state(intent, {"n": 1})
    listed = await lead.intents.acl(intent.id)
    assert [(one.id, one.principal_id, one.permission) for one in listed.entries] == [
        (grant.id, other_name, "read")
    ]
    await lead.intents.revoke(intent.id, grant.id)
    with pytest.raises(MemoryAccessError):
        await other.intents.get(intent.id)
    opened = await lead.intents.set_acl(intent.id, default_policy="open")
    assert (opened.default_policy, opened.entries) == ("open", [])
    assert (await other.intents.set_state(intent, {"n": 1})).state == {"n": 1}
    with pytest.raises(ResourceNotFoundError):
        await lead.intents.get("int_01HXYZ")


async def test_an_intents_log_is_written_read_and_followed(world: World) -> None:
    client = world.client(fresh("lead"))
    intent = await client.intents.create("Close the quarter")
    logged = await client.intents.log(intent.id, "note", {"text": "begun"}, trace_id="t1")
    assert (logged.type, logged.data["text"], logged.intent_id) == ("note", "begun", intent.id)
    task = await client.tasks.create(intent.id, "Reconcile")
    (entry,) = await client.memory.batch(
        [{"namespace": "n", "key": "k", "value": {"n": 1}, "scope": {"task_id": task.id}}]
    )
    page = await client.intents.events(intent.id)
    kinds = [event.type for event in page]
    assert kinds == ["intent_created", "note", "task.created", "memory.created"]
    # What is said of an entry has a shape of its own; all else is what its sender made of it.
    assert isinstance(page[-1].data, EventData)
    assert (page[-1].data.entry_id, page[-1].task_id) == (entry.id, task.id)
    assert isinstance(page[0].data, dict)
    assert page.next == page[-1].seq
    assert await client.intents.events(intent.id, page[0].seq, 1) == [page[1]]
    assert await client.intents.events(intent.id, event_type="note") == [page[1]]
    followed = await take(client.target.intents.follow(intent.id), 4)
    assert followed == list(page)
    assert await take(client.target.intents.follow(intent.id, page[2].seq), 1) == [page[3]]


async def test_following_an_intent_resumes_after_a_broken_connection(faulty: Faulty) -> None:
    faults = Faults()
    client = faulty.client(fresh("lead"), faults)
    intent = await client.intents.create("Close the quarter")
    for number in range(300):
        await client.intents.log(intent.id, "note", {"n": number, "fill": "x" * 300})
    faults.faults = ["cut", "unsent", "cut", "pass"]
    events = await take(client.target.intents.follow(intent.id), 301)
    assert [event.data.get("n") for event in events] == [None, *range(300)]
    assert not faults.faults


async def test_intents_hang_together(world: World) -> None:
    client = world.client(fresh("lead"))
    top = await client.intents.create("Top")
    first = await client.intents.create("First", parent_intent_id=top.id)
    second = await client.intents.create("Second", parent_intent_id=top.id, depends_on=[first.id])
    below = await client.intents.create("Below", parent_intent_id=second.id)

    async def ids(name: str, intent: Any) -> set[str]:
        return {one.id for one in await getattr(client.intents, name)(intent.id)}

    assert await ids("children", top) == {first.id, second.id}
    assert await ids("descendants", top) == {first.id, second.id, below.id}
    assert [one.id for one in await client.intents.ancestors(below.id)] == [second.id, top.id]
    assert await ids("dependencies", second) == {first.id}
    assert await ids("dependents", first) == {second.id}
    assert await ids("ready", top) == {first.id}
    assert await ids("blocked", top) == {second.id}
    graph = await client.intents.graph(top.id)
    assert (graph.root_id, graph.aggregate_status.total) == (top.id, 4)
    freed = await client.intents.remove_dependency(second, first.id)
    assert freed.depends_on == ()
    again = await client.intents.add_dependency(second.id, first.id)
    assert (again.depends_on, again.version) == ((first.id,), freed.version + 1)
    with pytest.raises(ResourceConflictError):
        await client.intents.remove_dependency(second, first.id)


async def test_a_scope_of_an_intent_is_leased(world: World) -> None:
    lead = world.client(fresh("lead"))
    intent = await lead.intents.create("Close the quarter")
    lease = await lead.intents.lease(intent.id, "ledger", 60)
    with pytest.raises(LeaseHeldError) as raised:
        await lead.intents.lease(intent.id, "ledger")
    assert raised.value.existing_lease["id"] == lease.id
    assert [one.id for one in await lead.intents.leases(intent.id)] == [lease.id]
    renewed = await lead.intents.renew_lease(intent.id, lease.id, 600)
    assert renewed.expires_at > lease.expires_at
    await lead.intents.release_lease(intent.id, lease.id)
    assert await lead.intents.leases(intent.id) == []
    later = await lead.intents.lease(intent.id, "ledger")
    assert later.fencing_token > lease.fencing_token


async def test_task_is_claimed_and_completed(world: World) -> None:
    lead, name = world.client(fresh("lead")), fresh("worker")
    worker = world.client(name)
    intent, task = await work(
        lead,
        assigned_agent=name,
        capabilities_required=["billing"],
        input={"batch": 7},
        memory_policy={"max_entries": 10},
        others={"timeout_seconds": 60},
    )
    waiting = await lead.tasks.create(
        intent.id, "Report", depends_on=[task.id], assigned_agent=name
    )
    assert (task.status, waiting.status, task.timeout_seconds) == ("ready", "pending", 60)
    assert await worker.tasks.next(["cooking"]) is None
    assert await worker.tasks.next(["billing"], intent_id="int_other") is None
    taken = await worker.tasks.next(["billing", "cooking"], lease_seconds=60)
    assert (taken.task.id, taken.task.status, taken.task.input) == (
        task.id,
        "claimed",
        {"batch": 7},
    )
    token = taken.lease.fencing_token
    assert await worker.tasks.next(["billing"]) is None
    with pytest.raises(LeaseHeldError) as raised:
        await worker.tasks.claim(task.id)
    assert raised.value.existing_lease["fencing_token"] == token
    renewed = await worker.tasks.renew(task.id, token, 600)
    assert renewed.expires_at > taken.lease.expires_at
    running = await worker.tasks.update(taken.task, status="running", fencing_token=token)
    with pytest.raises(FencedError):
        await worker.tasks.complete(running, {"n": 1})
    with pytest.raises(ResourceConflictError) as conflict:
        await worker.tasks.complete(taken.task, {"n": 1}, fencing_token=token)
    assert conflict.value.current_version == running.version
    done = await worker.tasks.complete(task.id, {"n": 1}, fencing_token=token)
    assert (done.status, done.output) == ("completed", {"n": 1})
    with pytest.raises(TransitionError):
        await lead.tasks.update(done, status="running")
    assert (await lead.tasks.get(waiting.id)).status == "ready"
    listed = await worker.tasks.list()
    assert [one.id for one in listed] == [task.id, waiting.id]
    assert [one.id for one in await worker.tasks.list(status="ready")] == [waiting.id]
    assert [one.id for one in await lead.tasks.list(intent_id=intent.id, limit=1)] == [task.id]
    assert await lead.tasks.list() == []
    assert len(await lead.tasks.list(assigned_agent=name)) == 2


async def test_an_agents_tasks_of_one_intent_are_listed(world: World) -> None:
    lead, name = world.client(fresh("lead")), fresh("worker")
    _, first = await work(lead, assigned_agent=name)
    intent, second = await work(lead, assigned_agent=name)
    await lead.tasks.create(intent.id, "Another's")
    both = await lead.tasks.list(assigned_agent=name)
    assert [one.id for one in both] == [first.id, second.id]
    of_intent = await lead.tasks.list(assigned_agent=name, intent_id=intent.id)
    assert [one.id for one in of_intent] == [second.id]


async def test_a_task_is_given_back_failed_and_given_to_another(world: World) -> None:
    lead, name, other = world.client(fresh("lead")), fresh("worker"), fresh("other")
    worker = world.client(name)
    _, task = await work(lead, assigned_agent=name)
    taken = await worker.tasks.claim(task.id, 60)
    await worker.tasks.release(task.id, taken.lease.fencing_token)
    assert (await worker.tasks.get(task.id)).status == "ready"
    with pytest.raises(FencedError):
        await worker.tasks.release(task.id, taken.lease.fencing_token)
    taken = await worker.tasks.claim(task.id, 60)
    given = await lead.tasks.assign(taken.task, other)
    assert (given.assigned_agent, given.status) == (other, "ready")
    with pytest.raises((FencedError, MemoryAccessError)):
        await worker.tasks.fail(task.id, "too late", fencing_token=taken.lease.fencing_token)
    taken = await world.client(other).tasks.claim(task.id)
    failed = await world.client(other).tasks.fail(
        taken.task, "no ledger", fencing_token=taken.lease.fencing_token
    )
    assert (failed.status, failed.error) == ("failed", "no ledger")
    again = await lead.tasks.update(failed, status="ready")
    assert (again.attempt, (await lead.tasks.cancel(again)).status) == (2, "cancelled")


async def test_a_scoped_client_writes_under_a_tasks_lease(world: World) -> None:
    lead, name = world.client(fresh("lead")), fresh("worker")
    worker = world.client(name)
    _, task = await work(lead, assigned_agent=name)
    taken = await worker.tasks.next(lease_seconds=600)
    own = await worker.scoped(task_id=task.id, fencing_token=taken.lease.fencing_token)
    made = await own.memory.set("invoices", "progress", {"n": 1})
    assert (made.scope.task_id, made.provenance.fencing_token) == (
        task.id,
        taken.lease.fencing_token,
    )
    assert (await own.memory.set("invoices", "progress", {"n": 2})).version == 2
    await own.memory.batch([{"namespace": "invoices", "key": "other", "value": {}}])
    await own.memory.delete("invoices", "other")
    with pytest.raises(FencedError):
        await worker.memory.set("invoices", "progress", {"n": 3}, version=2)
    named = {"version": 2, "fencing_token": taken.lease.fencing_token}
    assert (await worker.memory.set("invoices", "progress", {"n": 3}, **named)).version == 3
    async with held(own, key := fresh("item")):
        # Within a claim the claim counts, for its key alone.
        shared = await own.shared.set(key, {"by": name})
        assert shared.provenance.fencing_token > taken.lease.fencing_token
        assert (await own.memory.set("invoices", "progress", {"n": 4}, version=3)).version == 4
    assert await own.tasks.renew(task.id, duration_seconds=600)
    assert (await own.tasks.update(taken.task, status="running")).status == "running"
    await lead.tasks.assign(task.id, fresh("other"))
    for late in (
        own.memory.set("invoices", "progress", {"n": 5}, version=4),
        own.shared.set(key, {"by": "late"}, version=1),
        own.tasks.renew(task.id),
        own.memory.delete_by_id(made.id),
    ):
        with pytest.raises((FencedError, MemoryAccessError)):
            await late
    # It is as light as it says: its end leaves the client it came from as it was.
    await (own.close() if hasattr(own.target, "close") else own.aclose())
    assert (await worker.whoami()).agent_id == name


async def test_coordinator_is_appointed_and_resigns(world: World) -> None:
    lead, name = world.client(fresh("lead")), fresh("coordinator")
    coordinator = world.client(name)
    intent = await lead.intents.create("Close the quarter")
    made = await lead.coordinators.create(
        intent.id, name, guardrails={"max_working_memory_per_task": 5, "budget": 7}
    )
    assert (made.agent_id, made.status, made.guardrails["budget"]) == (name, "active", 7)
    with pytest.raises(LeaseHeldError) as raised:
        await lead.coordinators.create(intent.id)
    assert raised.value.existing_lease["agent_id"] == name
    alive = await coordinator.coordinators.heartbeat(made.id)
    assert (alive.id, alive.version) == (made.id, made.version + 1)
    with pytest.raises(MemoryAccessError):
        await lead.coordinators.heartbeat(made.id)
    await coordinator.coordinators.resign(made.id)
    with pytest.raises(FencedError):
        await coordinator.coordinators.resign(made.id)
    second = await lead.coordinators.create(intent.id, heartbeat_interval_seconds=5)
    assert second.fencing_token > made.fencing_token
    statuses = [(one.id, one.status) for one in await lead.coordinators.list(intent.id)]
    assert statuses == [(made.id, "completed"), (second.id, "active")]
    assert (await lead.coordinators.get(made.id)).status == "completed"


async def test_a_file_is_attached_and_read(world: World) -> None:
    client = world.client(fresh("lead"))
    intent = await client.intents.create("Close the quarter")
    content = bytes(range(256)) * 300
    made = await client.attachments.upload(
        intent.id, "büro.bin", content, mime_type="application/x-test", metadata={"page": 1}
    )
    assert (made.stored, made.size, made.metadata) == (True, len(content), {"page": 1})
    assert await client.attachments.download(intent.id, made.id) == content
    assert await client.attachments.get(intent.id, made.id) == made
    elsewhere = await client.attachments.add(
        intent.id, "far.pdf", storage_url="https://files.example/far.pdf"
    )
    assert (elsewhere.stored, elsewhere.storage_url) == (False, "https://files.example/far.pdf")
    listed = await client.attachments.list(intent.id)
    assert {one.id for one in listed} == {made.id, elsewhere.id}
    await client.attachments.delete(intent.id, made.id)
    with pytest.raises(ResourceNotFoundError):
        await client.attachments.download(intent.id, made.id)
    empty = await client.attachments.upload(intent.id, "empty", b"")
    assert await client.attachments.download(intent.id, empty.id) == b""


async def test_too_large_content_leaves_no_attachment(faulty: Faulty) -> None:
    faults = Faults()
    client = faulty.client(fresh("lead"), faults)
    intent = await client.intents.create("Close the quarter")
    faults.replies.append((413, b'{"error":"VALUE_TOO_LARGE","detail":"too large"}', "PUT"))
    with pytest.raises(ValueTooLargeError):
        await client.attachments.upload(intent.id, "large", b"x")
    assert await client.attachments.list(intent.id) == []


def test_limits_of_an_agent_are_set(server: ServerProcess) -> None:
    name = fresh("worker")
    flags = ("--permission", "memory.read", "--permission", "tenant.admin")
    administrator = Client(server.url, server.create_key(fresh("admin"), *flags))
    limits = administrator.memory.set_limits(
        name, episodic_capacity=2, pinned_namespaces=["learned"]
    )
    assert (limits.episodic_capacity, limits.pinned_namespaces) == (2, ("learned",))
    with Client(server.url, server.dev_key, agent=name) as worker:
        assert worker.memory.set("learned", "k", {}, memory_type="episodic").pinned
        with pytest.raises(MemoryAccessError):
            worker.memory.set_limits(name)
    administrator.close()


def test_a_tier_is_narrowed(server: ServerProcess) -> None:
    flags = ("--permission", "memory.read", "--permission", "tenant.admin")
    administrator = Client(server.url, server.create_key(fresh("admin"), *flags))
    (before,) = [one for one in administrator.tiers() if one.memory_type == "procedural"]
    narrowed = administrator.narrow_tier(
        "procedural", capacity=7, default_ttl="duration:P1D", eviction="lfu"
    )
    shown = (narrowed.capacity, narrowed.default_ttl, narrowed.eviction)
    assert shown == (7, "duration:P1D", "lfu")
    assert narrowed in administrator.tiers()
    with pytest.raises(ValidationError, match="default_ttl"):
        administrator.narrow_tier("procedural", default_ttl="forever")
    with Client(server.url, server.dev_key, agent=fresh("worker")) as worker:
        with pytest.raises(MemoryAccessError):
            worker.narrow_tier("procedural", capacity=1)
        assert narrowed in worker.tiers()
    assert administrator.narrow_tier("procedural") == before
    administrator.close()


async def test_what_is_made_happens_once_though_replies_are_lost(faulty: Faulty) -> None:
    faults = Faults("unheard", "pass", "unheard", "unheard", "pass", "unheard", "pass")
    client = faulty.client(fresh("lead"), faults)
    intent = await client.intents.create("Close the quarter")
    task = await client.tasks.create(intent.id, "Reconcile")
    await client.intents.log(intent.id, "note")
    assert not faults.faults
    mine = [one for one in await client.intents.list() if one.created_by == intent.created_by]
    assert [one.id for one in mine] == [intent.id]
    assert [one.id for one in await client.tasks.list(intent_id=intent.id)] == [task.id]
    kinds = [event.type for event in await client.intents.events(intent.id)]
    assert kinds == ["intent_created", "task.created", "note"]


async def test_update_with_lost_reply_is_recognized_as_own(faulty: Faulty) -> None:
    faults = Faults()
    name = fresh("lead")
    client = faulty.client(name, faults)
    intent, task = await work(client, assigned_agent=name)
    faults.faults = ["unheard"]
    changed = await client.intents.set_state(intent, {"n": 1})
    assert (changed.version, changed.state) == (2, {"n": 1})
    taken = await client.tasks.claim(task.id, 60)
    token = taken.lease.fencing_token
    faults.faults = ["unheard", "unheard"]
    done = await client.tasks.complete(taken.task, {"n": [1, None]}, fencing_token=token)
    assert (done.status, done.output) == ("completed", {"n": [1, None]})
    faults.faults = ["unsent", "unheard"]
    assert (await client.intents.set_status(changed, "completed")).version == 3
    # Somebody else's change is told as what it is, also after a lost request.
    faults.faults = ["unsent"]
    with pytest.raises(ResourceConflictError):
        await client.intents.set_state(intent, {"n": 1})
    with faulty.steady(name) as other:
        other.intents.set_state(intent.id, {"n": 7})
    faults.faults = ["unheard"]
    with pytest.raises(ResourceConflictError):
        await client.intents.set_state(intent.id, {"n": 7}, version=2)


async def test_acquisition_is_sent_once(faulty: Faulty) -> None:
    faults = Faults()
    name = fresh("worker")
    client = faulty.client(name, faults)
    intent, task = await work(client, assigned_agent=name)
    for call in (
        lambda: client.tasks.next(lease_seconds=60),
        lambda: client.intents.lease(intent.id, "ledger"),
        lambda: client.coordinators.create(intent.id),
        lambda: client.intents.grant(intent.id, "another"),
    ):
        sent = len(faults.requests)
        faults.faults = ["unsent", "unheard"]
        with pytest.raises(MemoryTransportError):
            await call()
        assert len(faults.requests) == sent + 2
    assert len(await client.intents.leases(intent.id)) == 1
    assert len((await client.intents.acl(intent.id)).entries) == 1
    with pytest.raises(LeaseHeldError):
        await client.tasks.claim(task.id)


async def test_release_or_deletion_with_lost_reply_succeeds(faulty: Faulty) -> None:
    faults = Faults()
    name = fresh("worker")
    client = faulty.client(name, faults)
    intent, task = await work(client, assigned_agent=name)
    taken = await client.tasks.claim(task.id, 60)
    lease = await client.intents.lease(intent.id, "ledger")
    coordinator = await client.coordinators.create(intent.id)
    grant = await client.intents.grant(intent.id, "another")
    for call in (
        lambda: client.tasks.release(task.id, taken.lease.fencing_token),
        lambda: client.intents.release_lease(intent.id, lease.id),
        lambda: client.coordinators.resign(coordinator.id),
        lambda: client.intents.revoke(intent.id, grant.id),
    ):
        faults.faults = ["unheard"]
        await call()
    assert (await client.tasks.get(task.id)).status == "ready"
    faults.faults = ["pass", "unheard"]
    stored = await client.attachments.upload(intent.id, "file", b"content")
    assert stored.stored
    assert await client.attachments.download(intent.id, stored.id) == b"content"
    with pytest.raises(MemoryNotFoundError):
        await client.intents.release_lease(intent.id, lease.id)
