"""The SDK's operations on memory: each test in both colours, over a server and in-process."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memorywall import MemoryEntry
from memorywall.exceptions import (
    EntryExistsError,
    MemoryAccessError,
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    RequestError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.records.tier import Tier
from memorywall.sdk.filters import FilterArguments
from memorywall.sdk.http import tls_context
from tests.test_sdk_support import World, fresh, server, take, world

pytestmark = pytest.mark.anyio
__all__ = ["server", "world"]


async def test_an_entry_is_set_read_and_set_again(world: World) -> None:
    client = world.client(fresh("billing"))
    made = await client.memory.set("invoices", "progress", {"completed": 23}, tags=["batch"])
    assert (made.version, made.memory_type, made.tags) == (1, Tier.WORKING, ("batch",))
    changed = await client.memory.set("invoices", "progress", {"completed": 24})
    assert (changed.id, changed.version, changed.tags) == (made.id, 2, ("batch",))
    read = await client.memory.get("invoices", "progress")
    assert read == changed
    assert await client.memory.get_by_id(made.id) == changed
    await client.memory.set("invoices", "progress", {"completed": 24}, tags=[])
    assert (await client.memory.get("invoices", "progress")).tags == ()


async def test_an_entry_is_read_like_its_value(world: World) -> None:
    client = world.client(fresh("billing"))
    await client.memory.set("invoices", "progress", {"last_id": "inv_789", "total": 47})
    progress = await client.memory.get("invoices", "progress")
    assert isinstance(progress, MemoryEntry)
    assert progress
    assert progress["last_id"] == "inv_789"
    assert "total" in progress
    assert "completed" not in progress
    assert progress.get("completed", 0) == 0
    assert dict(progress) == progress.value == {"last_id": "inv_789", "total": 47}
    assert {**progress, "total": 48} == {"last_id": "inv_789", "total": 48}
    with pytest.raises(KeyError):
        progress["completed"]


async def test_every_field_arrives(world: World) -> None:
    client = world.client(fresh("billing"))
    ends = datetime.now(UTC) + timedelta(hours=3)
    made = await client.memory.set(
        "invoices",
        "lesson",
        {"n": 1},
        memory_type="episodic",
        tags="single",
        scope={"task_id": "t1", "intent_id": "i1"},
        ttl="duration:PT24H",
        expires_at=ends,
        pinned=True,
        priority="high",
        sensitivity="confidential",
    )
    assert made.tags == ("single",)
    assert (made.scope.task_id, made.scope.intent_id) == ("t1", "i1")
    assert made.ttl == "duration:PT24H"
    assert made.expires_at is not None
    assert abs(datetime.fromisoformat(made.expires_at) - ends) < timedelta(milliseconds=2)
    assert (made.pinned, made.priority, made.sensitivity) == (True, "high", "confidential")
    unbound = await client.memory.set("invoices", "lesson", {"n": 2}, ttl=None, pinned=False)
    assert (unbound.ttl, unbound.expires_at, unbound.pinned) == (None, None, False)
    assert (unbound.priority, unbound.sensitivity) == ("high", "confidential")


async def test_absent_record_reads_as_none(world: World) -> None:
    client = world.client(fresh("billing"))
    assert await client.memory.get("invoices", "nothing") is None
    assert await client.memory.get("invoices", "nothing", "semantic") is None
    await client.memory.set("invoices", "nothing", {"n": 1})
    # A name that ends in `*` is a prefix in a query, but no name of an entry.
    assert await client.memory.get("invoic*", "nothing") is None
    assert await client.memory.get("invoices", "nothing", "episodic") is None


async def test_the_narrowest_tier_is_read_first(world: World) -> None:
    agent, namespace = fresh("billing"), fresh("policies")
    client = world.client(agent)
    tiers = [tier for tier in Tier if tier is not Tier.SHARED]
    for tier in reversed(tiers):
        await client.memory.set(namespace, "key", {"tier": tier.value}, memory_type=tier)
    for tier in tiers:
        found = await client.memory.get(namespace, "key")
        assert found.memory_type is tier
        assert (await client.memory.get(namespace, "key", tier))["tier"] == tier.value
        await client.memory.delete(namespace, "key")
    assert await client.memory.get(namespace, "key") is None
    with pytest.raises(MemoryNotFoundError):
        await client.memory.delete(namespace, "key")


async def test_shared_state_is_read_last(world: World) -> None:
    client, key = world.client(fresh("billing")), fresh("key")
    for tier in (Tier.SHARED, Tier.EPISODIC):
        await client.memory.set("shared/global", key, {"tier": tier.value}, memory_type=tier)
    assert (await client.memory.get("shared/global", key)).memory_type is Tier.EPISODIC
    await client.memory.delete("shared/global", key)
    assert (await client.memory.get("shared/global", key)).memory_type is Tier.SHARED
    await client.memory.delete("shared/global", key)
    assert await client.memory.get("shared/global", key) is None


async def test_set_changes_the_tier_it_knows_and_creates_in_another(world: World) -> None:
    client = world.client(fresh("billing"))
    lesson = await client.memory.set("learned", "size", {"n": 50}, memory_type="episodic")
    changed = await client.memory.set("learned", "size", {"n": 60})
    assert (changed.id, changed.memory_type, changed.version) == (lesson.id, Tier.EPISODIC, 2)
    working = await client.memory.set("learned", "size", {"n": 1}, memory_type="working")
    assert (working.memory_type, working.version) == (Tier.WORKING, 1)


async def test_working_memory_belongs_to_the_clients_task(world: World) -> None:
    agent, task = fresh("billing"), fresh("task")
    client = world.client(agent, task_id=task)
    made = await client.memory.set("invoices", "progress", {"n": 1})
    assert made.scope.task_id == task
    assert (await client.memory.get("invoices", "progress")).id == made.id
    (batched,) = await client.memory.batch([{"namespace": "a", "key": "b", "value": {}}])
    assert batched.scope.task_id == task
    lesson = await client.memory.set("invoices", "lesson", {"n": 1}, memory_type="episodic")
    assert lesson.scope.task_id is None
    assert (await world.client(agent).memory.query(task_id=task)).total == 2


async def test_a_conflict_shows_the_current_state_and_a_blind_retry_conflicts_again(
    world: World,
) -> None:
    agent = fresh("billing")
    one, other = world.client(agent), world.client(agent)
    await one.memory.set("invoices", "progress", {"n": 1})
    await other.memory.get("invoices", "progress")
    await other.memory.set("invoices", "progress", {"n": 2})
    for _ in range(3):
        with pytest.raises(MemoryConflictError) as raised:
            await one.memory.set("invoices", "progress", {"n": 100})
        assert raised.value.current_value == {"n": 2}
        assert raised.value.current_version == 2
    with pytest.raises(MemoryConflictError):
        await one.memory.set("invoices", "progress", {"n": 100}, version=0)
    merged = await one.memory.set(
        "invoices", "progress", {"n": 102}, version=raised.value.current_version
    )
    assert (merged.version, merged.value) == (3, {"n": 102})
    assert (await one.memory.set("invoices", "progress", {"n": 103})).version == 4


async def test_reading_after_a_conflict_counts_as_having_seen(world: World) -> None:
    agent = fresh("billing")
    one, other = world.client(agent), world.client(agent)
    await one.memory.set("invoices", "progress", {"n": 1})
    (seen,) = await other.memory.query(namespace="invoices", memory_type="working")
    assert (await other.memory.set("invoices", "progress", {"n": 2})).id == seen.id
    with pytest.raises(MemoryConflictError):
        await one.memory.set("invoices", "progress", {"n": 100})
    assert (await one.memory.get("invoices", "progress"))["n"] == 2
    assert (await one.memory.set("invoices", "progress", {"n": 3})).version == 3


async def test_unseen_entry_is_not_overwritten(world: World) -> None:
    agent = fresh("billing")
    await world.client(agent).memory.set("invoices", "progress", {"n": 1})
    newcomer = world.client(agent)
    for _ in range(2):
        with pytest.raises(EntryExistsError) as raised:
            await newcomer.memory.set("invoices", "progress", {"n": 9})
        assert raised.value.current_value == {"n": 1}
        assert raised.value.current_version == 1
    with pytest.raises(MemoryConflictError) as batched:
        await newcomer.memory.batch(
            [
                {"namespace": "invoices", "key": "new", "value": {}},
                {"namespace": "invoices", "key": "progress", "value": {"n": 9}},
            ]
        )
    assert batched.value.index == 1
    assert await newcomer.memory.get("invoices", "new") is None
    changed = await newcomer.memory.set("invoices", "progress", {"n": 10}, version=1)
    assert changed.version == 2


async def test_a_version_alone_is_enough_to_change_an_entry(world: World) -> None:
    agent = fresh("billing")
    await world.client(agent).memory.set("invoices", "progress", {"n": 1})
    newcomer = world.client(agent)
    with pytest.raises(MemoryConflictError) as raised:
        await newcomer.memory.set("invoices", "progress", {"n": 2}, version=7)
    assert raised.value.current_version == 1
    with pytest.raises(EntryExistsError):
        await newcomer.memory.set("invoices", "progress", {"n": 2})
    with pytest.raises(MemoryConflictError):
        await newcomer.memory.set("invoices", "progress", {"n": 2}, version=0)
    assert (await newcomer.memory.set("invoices", "progress", {"n": 2}, version=1)).version == 2
    with pytest.raises(MemoryNotFoundError):
        await newcomer.memory.set("invoices", "nothing", {"n": 2}, version=1)


async def test_missing_entry_raises_once_and_is_then_created(world: World) -> None:
    agent = fresh("billing")
    one, other = world.client(agent), world.client(agent)
    first = await one.memory.set("invoices", "progress", {"n": 1})
    await other.memory.delete("invoices", "progress")
    with pytest.raises(MemoryNotFoundError):
        await one.memory.set("invoices", "progress", {"n": 2})
    again = await one.memory.set("invoices", "progress", {"n": 2})
    assert (again.version, again.id != first.id) == (1, True)
    await other.memory.delete_by_id(again.id)
    # Having looked is as good as having been told.
    assert await one.memory.get("invoices", "progress") is None
    assert (await one.memory.set("invoices", "progress", {"n": 3})).version == 1


async def test_own_deletions_are_remembered(world: World) -> None:
    client = world.client(fresh("billing"))
    await client.memory.set("invoices", "a", {"n": 1})
    await client.memory.set("invoices", "b", {"n": 1}, tags=["done"])
    await client.memory.delete("invoices", "a")
    assert (await client.memory.set("invoices", "a", {"n": 2})).version == 1
    assert await client.memory.delete_matching(memory_type="working", tags=["done"]) == 1
    assert (await client.memory.set("invoices", "b", {"n": 2})).version == 1
    assert (await client.memory.set("invoices", "a", {"n": 3})).version == 2
    with pytest.raises(RequestError):
        await client.memory.delete_matching()


async def test_an_empty_condition_deletes_nothing(world: World) -> None:
    """As of a variable that is not set; beside another condition, too."""
    agent = fresh("billing")
    client = world.client(agent)
    await client.memory.set("notes", "k", {}, "episodic")
    for name in FilterArguments.__annotations__:
        empty: list[Any] = ["", []] if name.startswith("tags") else [""]
        for value in empty:
            for others in ({}, {"memory_type": "episodic", "agent_id": agent}):
                with pytest.raises((RequestError, ValidationError), match=name):
                    await client.memory.delete_matching(**{**others, name: value})
    assert await client.memory.count(agent_id=agent) == 1


async def test_a_deletion_may_ask_for_a_version(world: World) -> None:
    client = world.client(fresh("billing"))
    await client.memory.set("invoices", "a", {"n": 1})
    await client.memory.set("invoices", "a", {"n": 2})
    with pytest.raises(MemoryConflictError) as raised:
        await client.memory.delete("invoices", "a", version=1)
    assert raised.value.current_version == 2
    await client.memory.delete("invoices", "a", version=2)
    assert await client.memory.get("invoices", "a") is None


async def test_refusal_contains_counts_when_all_entries_are_pinned(world: World) -> None:
    client = world.client(fresh("billing"))
    pinned = {"namespace": "learned", "value": {}, "memory_type": "episodic", "pinned": True}
    written = await client.memory.batch({**pinned, "key": f"k{n}"} for n in range(1_000))
    assert (len(written), written.created, written.updated) == (1_000, 1_000, 0)
    with pytest.raises(MemoryCapacityError) as raised:
        await client.memory.set("learned", "one more", {"n": 1}, memory_type="episodic")
    assert (raised.value.current_count, raised.value.max_capacity) == (1_000, 1_000)
    assert (await client.memory.set("learned", "k0", {"n": 1})).version == 2


async def test_another_agents_memory_is_refused(world: World) -> None:
    owner, stranger = world.client(fresh("owner")), world.client(fresh("stranger"))
    entry = await owner.memory.set("invoices", "progress", {"secret": 1})
    for refused in (
        stranger.memory.get_by_id(entry.id),
        stranger.memory.delete_by_id(entry.id),
        stranger.memory.summary(entry.agent_id),
        stranger.events.list(agent_id=entry.agent_id),
    ):
        with pytest.raises(MemoryAccessError):
            await refused
    assert await stranger.memory.get("invoices", "progress") is None
    assert (await stranger.memory.set("invoices", "progress", {"mine": 1})).version == 1
    assert (await owner.memory.get("invoices", "progress")).value == {"secret": 1}


async def test_ids_that_are_not_there(world: World) -> None:
    client = world.client(fresh("billing"))
    for entry_id in ("mem_01HXYZ", "a/b", "..", "%2e%2e", "ü?x=1#y", ""):
        with pytest.raises(MemoryNotFoundError):
            await client.memory.get_by_id(entry_id)
        with pytest.raises((MemoryNotFoundError, RequestError)):
            await client.memory.delete_by_id(entry_id)


async def test_queries_take_every_condition(world: World) -> None:
    client = world.client(fresh("billing"))
    before = datetime.now(UTC) - timedelta(seconds=1)
    for number in range(5):
        await client.memory.set(
            "invoices.eu" if number % 2 else "invoices.us",
            f"k{number}",
            {"n": number},
            memory_type="episodic",
            tags=["batch", f"t{number}"],
            scope={"task_id": "t", "intent_id": f"i{number}"},
            pinned=number == 3,
        )

    async def keys(**wanted: Any) -> list[str]:
        page = await client.memory.query(memory_type="episodic", **wanted)
        assert page.total == len(page)
        return sorted(entry.key for entry in page)

    assert await keys() == ["k0", "k1", "k2", "k3", "k4"]
    assert await keys(namespace="invoices.eu") == ["k1", "k3"]
    assert len(await keys(namespace="invoices.*")) == 5
    assert await keys(key="k2") == ["k2"]
    assert await keys(tags=["batch", "t1"]) == ["k1"]
    assert await keys(tags="t4") == ["k4"]
    assert await keys(tags_any=["t1", "t2"]) == ["k1", "k2"]
    assert await keys(intent_id="i0", task_id="t") == ["k0"]
    assert await keys(pinned=True) == ["k3"]
    assert await keys(pinned=False) == ["k0", "k1", "k2", "k4"]
    assert await keys(updated_after=before, updated_before=None) == ["k0", "k1", "k2", "k3", "k4"]
    assert await keys(updated_before=before.isoformat()) == []
    page = await client.memory.query(memory_type="episodic", limit=2, offset=2)
    assert (page.total, page.limit, page.offset) == (5, 2, 2)
    assert [entry.key for entry in page] == ["k2", "k1"]
    with pytest.raises(TypeError, match="colour"):
        await client.memory.query(colour="red")
    with pytest.raises(RequestError):
        await client.memory.query(memory_type="episodic", limit=1_001)
    with pytest.raises(RequestError):
        await client.memory.query(memory_type="emotional")


async def test_a_batch_creates_and_changes_together(world: World) -> None:
    client = world.client(fresh("billing"))
    seen = await client.memory.set("invoices", "seen", {"n": 1})
    written = await client.memory.batch(
        [
            {"namespace": "invoices", "key": "seen", "value": {"n": 2}, "tags": "one"},
            {"namespace": "invoices", "key": "new", "value": {"n": 1}, "memory_type": "episodic"},
        ]
    )
    assert (written.created, written.updated) == (1, 1)
    assert [(entry.id == seen.id, entry.version) for entry in written] == [(True, 2), (False, 1)]
    assert written[0].tags == ("one",)
    again = await client.memory.batch(
        [
            {"id": seen.id, "version": 2, "value": {"n": 3}},
            {"namespace": "invoices", "key": "new", "value": {"n": 2}},
        ]
    )
    assert (again.created, again.updated) == (0, 2)
    assert (await client.memory.set("invoices", "seen", {"n": 4})).version == 4
    with pytest.raises(MemoryConflictError) as raised:
        await client.memory.batch(
            [
                {"namespace": "invoices", "key": "other", "value": {}},
                {"id": seen.id, "version": 1, "value": {"n": 9}},
            ]
        )
    assert (raised.value.index, raised.value.current_version) == (1, 4)
    with pytest.raises(ValidationError):
        await client.memory.batch([{"namespace": "invoices", "key": "other"}])


@pytest.mark.parametrize("name", ["plain", "a/b", "..", ".", "a//b/../c", "ü 100% ?&#+;=", "x:y@z"])
async def test_namespaces_may_have_any_name(world: World, name: str) -> None:
    curator = world.client(fresh("curator"))
    namespace = name if name in ("..", ".") else fresh(name)
    held = await curator.memory.get(namespace, "rule", "semantic")
    if held is None:
        agent = curator
        await agent.memory.set(namespace, "rule", {"usd": 10}, memory_type="semantic")
        view = await curator.memory.namespace(namespace)
        assert (view.namespace, view.access) == (namespace, "admin")
    assert namespace in [brief.namespace for brief in await curator.memory.namespaces()]
    assert (await curator.memory.query(namespace=namespace, memory_type="semantic")).total == 1


async def test_permissions_of_a_namespace(world: World) -> None:
    curator, reader = world.client(fresh("curator")), world.client(fresh("reader"))
    namespace = fresh("policies")
    await curator.memory.set(namespace, "rule", {"usd": 10}, memory_type="semantic")
    assert (await reader.memory.get(namespace, "rule"))["usd"] == 10
    with pytest.raises(MemoryAccessError):
        await reader.memory.set(namespace, "rule", {"usd": 99})
    view = await curator.memory.namespace(namespace)
    changed = await curator.memory.set_permissions(
        namespace, default="none", allow=view.permissions.allow, version=view.version
    )
    assert changed.permissions.default == "none"
    with pytest.raises(MemoryConflictError) as raised:
        await curator.memory.set_permissions(namespace, default="read", version=view.version)
    assert raised.value.current_version == changed.version
    with pytest.raises(MemoryAccessError):
        await reader.memory.namespace(namespace)
    with pytest.raises(MemoryNotFoundError):
        await reader.memory.namespace(fresh("nowhere"))


async def test_an_export_gives_everything(world: World) -> None:
    client = world.client(fresh("billing"))
    await client.memory.batch(
        {"namespace": "bulk", "key": f"k{n}", "value": {"n": n}, "tags": [f"t{n % 2}"]}
        for n in range(450)
    )
    exported = await take(client.target.memory.export(memory_type="working"))
    assert [entry["n"] for entry in exported] == list(reversed(range(450)))
    assert len(await take(client.target.memory.export(memory_type="working", tags="t1"))) == 225
    assert len(await take(client.target.memory.export(namespace="bulk"), 3)) == 3
    with pytest.raises(RequestError):
        await take(client.target.memory.export(memory_type="emotional"))


async def test_events_are_listed_and_followed(world: World) -> None:
    client = world.client(fresh("billing"))
    await client.memory.set("invoices", "a", {"n": 1})
    await client.memory.set("invoices", "a", {"n": 2})
    await client.memory.delete("invoices", "a")
    page = await client.events.list()
    assert [event.type for event in page] == ["memory.created", "memory.updated", "memory.deleted"]
    assert page.next == page[-1].seq
    assert [event.seq for event in await client.events.list(page[0].seq, 1)] == [page[1].seq]
    followed = await take(client.target.events.follow(), 3)
    assert followed == list(page)
    assert await take(client.target.events.follow(page[1].seq), 1) == [page[2]]


async def test_the_server_describes_itself(world: World) -> None:
    agent = fresh("billing")
    client = world.client(agent)
    await client.memory.set("invoices", "a", {"n": 1})
    summary = await client.memory.summary()
    assert (summary.agent_id, summary.working.entry_count) == (agent, 1)
    assert list(Tier) == (await client.capabilities()).memory_types
    assert (await client.discover()).api_base == "/api/v1"
    assert (await client.health()).status == "ok"
    assert (await client.ready()).status == "ready"
    assert (await client.whoami()).agent_id == agent


async def test_invalid_value_is_refused(world: World) -> None:
    client = world.client(fresh("billing"))
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"d": deep}
    for value in ({"n": float("nan")}, {"n": float("inf")}, {"s": "\ud800"}, deep):
        with pytest.raises(ValidationError):
            await client.memory.set("invoices", "bad", value)
    with pytest.raises(ValidationError, match=r"`value\.when` is a datetime"):
        await client.memory.set("invoices", "bad", {"when": datetime.now(UTC)})
    with pytest.raises(ValueTooLargeError):
        await client.memory.set("invoices", "bad", {"s": "x" * (64 * 1024)})
    with pytest.raises(ValidationError):
        await client.memory.set("invoices", "bad", {"n": 1}, priority="urgent")
    assert await client.memory.get("invoices", "bad") is None


async def test_names_may_be_in_any_script(world: World) -> None:
    client = world.client(fresh("büro-東京"))
    made = await client.memory.set("счета", "ключ", {"é": "😀"}, tags=["été"])
    assert (await client.memory.query(memory_type="working", tags=["été"]))[0] == made
    assert (await client.memory.summary()).working.entry_count == 1


def test_a_client_of_a_plain_url_loads_no_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    plain, secure = tls_context("HTTP://localhost:1"), tls_context("https://localhost:1")
    assert plain.get_ca_certs() == []
    assert secure.get_ca_certs() != []
    # Both refuse a server that they cannot verify.
    assert plain.verify_mode == secure.verify_mode == ssl.CERT_REQUIRED
    assert tls_context("https://elsewhere") is secure
    monkeypatch.setenv("http_proxy", "https://proxy:1")
    assert tls_context("http://localhost:1") is secure
