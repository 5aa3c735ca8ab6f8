"""`put`, `update`, `remember` and `recall` of every client."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from memorywall import Client
from memorywall.exceptions import (
    EntryExistsError,
    FencedError,
    MemoryConflictError,
    MemoryNotFoundError,
    PreconditionError,
    ValidationError,
)
from memorywall.records.entry import Scope
from memorywall.sdk.executors import BlockingDriver
from memorywall.sdk.put import _LONGEST_WAIT, PutCore
from tests.test_sdk_concurrency import run_all
from tests.test_sdk_support import (
    Either,
    Faults,
    Faulty,
    World,
    faulty,
    fresh,
    held,
    server,
    world,
)

pytestmark = pytest.mark.anyio
__all__ = ["faulty", "server", "world"]

WRITERS = 16
two_worlds = pytest.mark.parametrize("world", ["http-async", "local-blocking"], indirect=True)
"""For what does not depend on the colour of a client."""


def add_one(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "n": value["n"] + 1}


async def test_put_creates_and_replaces_without_a_read(world: World) -> None:
    agent = fresh("billing")
    client = world.client(agent)
    made = await client.memory.put("n", "k", {"n": 1}, "episodic", tags=["a"], pinned=True)
    assert (made.version, made.value, made.memory_type) == (1, {"n": 1}, "episodic")
    seen = await client.memory.put("n", "k", {"n": 2})
    assert (seen.id, seen.version, seen.tags, seen.pinned) == (made.id, 2, ("a",), True)
    # A client that has not seen the entry replaces it as well, in the tier in which it exists.
    other = world.client(agent)
    unseen = await other.memory.put("n", "k", {"n": 3}, sensitivity="restricted")
    assert (unseen.id, unseen.version, unseen.tags) == (made.id, 3, ("a",))
    assert (await client.memory.get("n", "k")).value == {"n": 3}
    plain = await client.memory.put("n", "plain", {"n": 1})
    assert plain.memory_type == "working"


@two_worlds
@pytest.mark.parametrize("tier", ["working", "session", "episodic"])
async def test_put_replaces_own_memory_after_any_write(world: World, tier: str) -> None:
    agent = fresh("billing")
    client, other = world.client(agent), world.client(agent)
    await client.memory.put("n", "k", {"n": 1}, tier)
    await other.memory.put("n", "k", {"n": 2}, tier)
    last = await client.memory.put("n", "k", {"n": 3}, tags=["a"])
    assert (last.value, last.version, last.memory_type) == ({"n": 3}, 3, tier)
    assert (await other.memory.put("n", "k", {"n": 4})).tags == ("a",)
    # A version and `set` are conditions that the caller chooses.
    for write in (
        lambda: client.memory.put("n", "k", {"n": 5}, version=3),
        lambda: client.memory.set("n", "k", {"n": 5}),
    ):
        with pytest.raises(MemoryConflictError):
            await write()


@two_worlds
async def test_put_of_a_person_and_of_all_replace_each_other(world: World) -> None:
    client = world.client(fresh("billing"))
    ana = await client.for_user("ana")
    made = await ana.remember("tea")
    await client.memory.put(made.namespace, made.key, {"text": "coffee"})
    last = await ana.memory.put("remembered", made.key, {"text": "water"})
    assert (last.id, last.version, last.value) == (made.id, 3, {"text": "water"})
    assert (await client.memory.put(made.namespace, made.key, {"text": "wine"})).version == 4


@two_worlds
@pytest.mark.parametrize("tier", ["working", "semantic", "shared"])
async def test_put_does_not_lose_a_change_of_what_agents_share(world: World, tier: str) -> None:
    agent, key = fresh("billing"), fresh("k")
    namespace = "shared/global" if tier == "shared" else fresh("facts")
    options = {"scope": {"task_id": "task_1"}} if tier == "working" else {}
    client, other = world.client(agent), world.client(agent)
    await client.memory.put(namespace, key, {"n": 1}, tier, **options)
    await other.memory.put(namespace, key, {"n": 2}, tier)
    for _ in range(2):
        with pytest.raises(MemoryConflictError, match="update") as raised:
            await client.memory.put(namespace, key, {"n": 10}, tier)
        assert (raised.value.current_value, raised.value.current_version) == ({"n": 2}, 2)
    merged = await client.memory.put(namespace, key, {"n": 12}, tier, version=2)
    assert (merged.value, merged.version) == ({"n": 12}, 3)


@two_worlds
async def test_put_creates_again_what_is_gone(world: World) -> None:
    agent = fresh("billing")
    client, other = world.client(agent), world.client(agent)
    made = await client.memory.put("n", "k", {"n": 1})
    await other.memory.delete("n", "k")
    again = await client.memory.put("n", "k", {"n": 2})
    assert (again.version, again.id == made.id) == (1, False)


@two_worlds
async def test_conditions_of_put(world: World) -> None:
    client = world.client(fresh("billing"))
    with pytest.raises(MemoryNotFoundError):
        await client.memory.put("n", "k", {"n": 1}, version=1)
    await client.memory.put("n", "k", {"n": 1}, if_absent=True)
    with pytest.raises(EntryExistsError) as raised:
        await client.memory.put("n", "k", {"n": 2}, if_absent=True)
    assert raised.value.current_value == {"n": 1}
    assert (await client.memory.put("n", "k", {"n": 2}, version=1)).version == 2
    with pytest.raises(MemoryConflictError):
        await client.memory.put("n", "k", {"n": 3}, version=1)


@two_worlds
async def test_session_is_a_part_of_the_name(world: World) -> None:
    agent = fresh("billing")
    scope = Scope(session_id="s1") if world.colour == "async" else {"session_id": "s1"}
    client = world.client(agent)
    plain = await client.memory.put("n", "k", {"n": 0}, "session")
    made = await client.memory.put("n", "k", {"n": 1}, "session", scope=scope)
    assert (made.id == plain.id, made.scope.session_id) == (False, "s1")
    for one in (client, world.client(agent)):
        await one.memory.put("n", "k", {"n": 2}, "session", scope=scope)
        changed = await one.memory.update("n", "k", add_one, "session", scope=scope)
        assert (changed.id, changed.value) == (made.id, {"n": 3})
    assert changed.version == 5
    bound = {"session_id": "s2", "task_id": "task_1"}
    whole = await client.memory.put("n", "k", {"n": 1}, "session", scope=bound)
    only = {"session_id": "s2"}
    for one in (client, world.client(agent)):
        kept = await one.memory.put("n", "k", {"n": 2}, "session", scope=only)
        assert (kept.id, kept.scope) == (whole.id, Scope(**bound))
    same = await world.client(agent).memory.put("n", "k", {"n": 9}, "session")
    assert (same.id, same.version) == (plain.id, 2)


@two_worlds
async def test_update_computes_the_value_again_after_each_conflict(world: World) -> None:
    agent = fresh("billing")
    client, other = world.client(agent), world.client(agent)
    await client.memory.put("n", "k", {"n": 0}, "episodic", tags=["a"])
    seen: list[int] = []
    disturbed = Disturbance(other)

    def change(value: dict[str, Any]) -> dict[str, Any]:
        seen.append(value["n"])
        disturbed.once()
        value["n"] += 1
        return value

    if world.colour == "async":
        changed = await client.memory.update("n", "k", add_one)
        assert (changed.value, changed.version) == ({"n": 1}, 2)
        return
    changed = await client.memory.update("n", "k", change, tags=["b"])
    assert (changed.value, changed.version, changed.tags) == ({"n": 101}, 3, ("b",))
    assert seen == [0, 100]


class Disturbance:
    """A write of another client in the middle of an update."""

    def __init__(self, client: Either) -> None:
        self._client = client
        self._is_done = False

    def once(self) -> None:
        if not self._is_done:
            self._is_done = True
            self.write()

    def write(self) -> None:
        self._client.target.memory.update("n", "k", lambda value: {"n": value["n"] + 100})


@two_worlds
async def test_update_without_an_entry_needs_a_default(world: World) -> None:
    client = world.client(fresh("billing"))
    with pytest.raises(MemoryNotFoundError, match="default"):
        await client.memory.update("n", "k", add_one)
    default = {"n": 0}
    made = await client.memory.update("n", "k", add_one, "episodic", default=default)
    assert (made.value, made.version, made.memory_type) == ({"n": 1}, 1, "episodic")
    assert default == {"n": 0}
    assert (await client.memory.update("n", "k", add_one, default=default)).value == {"n": 2}


@two_worlds
async def test_error_of_the_function_is_raised_and_nothing_is_written(world: World) -> None:
    client = world.client(fresh("billing"))
    await client.memory.put("n", "k", {"n": 1})
    with pytest.raises(ZeroDivisionError):
        await client.memory.update("n", "k", lambda value: {"n": 1 // 0})
    for other in (lambda value: None, lambda value: [value], lambda value: "text"):
        with pytest.raises(ValidationError, match="object"):
            await client.memory.update("n", "k", other)
    assert (await client.memory.get("n", "k")).version == 1


async def test_updates_of_many_clients_lose_nothing(world: World) -> None:
    agent = fresh("billing")
    clients = [world.client(agent) for _ in range(4)]

    def work(client: Either) -> Callable[[], object]:
        return lambda: client.memory.update("n", "counter", add_one, default={"n": 0}, attempts=500)

    await run_all(world, [work(clients[place % 4]) for place in range(WRITERS)])
    counter = await clients[0].memory.get("n", "counter")
    assert (counter.value, counter.version) == ({"n": WRITERS}, WRITERS)


@two_worlds
async def test_puts_of_many_clients_are_all_versions(world: World) -> None:
    agent = fresh("billing")
    clients = [world.client(agent) for _ in range(4)]

    def work(place: int, client: Either) -> Callable[[], object]:
        return lambda: client.memory.put(facts, "k", {"n": place}, "semantic")

    facts = fresh("facts")
    await run_all(world, [work(place, client) for place, client in enumerate(clients)])
    entry = await clients[0].memory.get(facts, "k")
    assert entry.version == len(clients)
    versions = range(1, entry.version + 1)
    kept = [await clients[0].memory.get_by_id(entry.id, version=one) for one in versions]
    assert sorted(one["n"] for one in kept) == list(range(len(clients)))


class Pauses(BlockingDriver):
    """Answers every read with an entry and every write with a conflict; notes the pauses."""

    def __init__(self, client: Client) -> None:
        self.pauses: list[float] = []
        super().__init__(pause=self.pauses.append)
        self._driver = client.driver
        self.writes = 0

    def send(self, request: Any) -> Any:
        if request.operation == "put_entry":
            self.writes += 1
            if request.if_match is not None:
                behind = type(request)(
                    **{
                        name: getattr(request, name)
                        for name in request.__struct_fields__
                        if name != "if_match"
                    },
                    if_match=request.if_match + 1,
                )
                return self._driver.send(behind)
        return self._driver.send(request)

    def open(self, step: Any) -> Any:
        return self._driver.open(step)

    def close(self) -> None: ...

    @property
    def is_closed(self) -> bool:
        return False


@two_worlds
async def test_attempts_are_bounded_and_pauses_grow(world: World) -> None:
    client = world.client(fresh("billing")).target
    if not isinstance(client, Client):
        return
    client.memory.put("n", "k", {"n": 1})
    driver = Pauses(client)
    core = PutCore(client._state, jitter=lambda: 1.0)
    with pytest.raises(MemoryConflictError, match="each of 9 attempts") as raised:
        driver.run(core.update("n", "k", add_one, attempts=9))
    assert (raised.value.current_value, raised.value.current_version) == ({"n": 1}, 1)
    assert driver.writes == 9
    assert driver.pauses[:3] == [0.01, 0.02, 0.04]
    assert (len(driver.pauses), max(driver.pauses)) == (8, _LONGEST_WAIT)


async def test_put_sends_what_a_conflict_names(faulty: Faulty) -> None:
    agent, faults = fresh("billing"), Faults()
    client, other = faulty.client(agent, faults), faulty.client(agent, Faults())
    for number in range(3):
        await client.memory.put("n", "k", {"n": number}, "episodic")
        await other.memory.put("n", "k", {"n": -number}, "episodic")
    before = len(faults.requests)
    last = await client.memory.put("n", "k", {"n": 3})
    assert (last.value, last.version) == ({"n": 3}, 7)
    # One is refused, and the other one has the version of the refusal.
    assert [request.method for request in faults.requests[before:]] == ["PATCH"] * 2


async def test_lost_response_of_an_update_counts_once(faulty: Faulty) -> None:
    agent = fresh("billing")
    faults = Faults("unheard")
    client = faulty.client(agent, faults)
    made = await client.memory.put("n", "k", {"n": 1}, "episodic")
    assert made.version == 1
    await client.memory.get("n", "k")
    faults.faults = ["heard", "unheard", "unheard"]
    changed = await client.memory.update("n", "k", add_one)
    assert (changed.value, changed.version) == ({"n": 2}, 2)


@two_worlds
async def test_put_and_update_obey_claims(world: World) -> None:
    client, other = world.client(fresh("ada")), world.client(fresh("ben"))
    key = fresh("ticket")
    async with held(client, key, ttl=30):
        await client.memory.put("shared/global", key, {"n": 1}, "shared")
        await client.memory.update("shared/global", key, add_one, "shared")
        for write in (
            lambda: other.memory.put("shared/global", key, {"n": 9}, "shared"),
            lambda: other.memory.update("shared/global", key, add_one, "shared"),
        ):
            with pytest.raises(FencedError):
                await write()
    changed = await other.memory.update("shared/global", key, add_one, "shared")
    assert (changed.value, changed.version) == ({"n": 3}, 3)


@two_worlds
async def test_last_write_wins_where_the_namespace_lets_it(world: World) -> None:
    agent = fresh("billing")
    client, other = world.client(agent), world.client(agent)
    name = fresh("facts")
    await client.memory.put(name, "k", {"n": 1}, "semantic")
    shown = await client.memory.set_permissions(name, last_write_wins=True)
    assert shown.last_write_wins
    assert (await client.memory.namespace(name)).last_write_wins
    await other.memory.put(name, "k", {"n": 2}, "semantic")
    # The client has seen version 1 only.
    last = await client.memory.put(name, "k", {"n": 3}, "semantic")
    assert (last.value, last.version) == ({"n": 3}, 3)
    fields = {"namespace": name, "key": "k", "value": {"n": 4}, "memory_type": "semantic"}
    assert (await client.call("put_entry", **fields, if_match="*"))["version"] == 4
    with pytest.raises(PreconditionError):
        await client.call("put_entry", **fields, if_match="newest")


@two_worlds
async def test_concurrent_merges_of_different_fields_lose_nothing(world: World) -> None:
    agent, key = fresh("billing"), fresh("k")
    clients = [world.client(agent) for _ in range(4)]
    await clients[0].memory.put("n", key, {"old": 1, "kept": {"a": 1}}, "episodic")
    merge = [
        lambda number=number, client=client: client.memory.merge(
            "n", key, {"old": None, "kept": {f"b{number}": number}}
        )
        for number, client in enumerate(clients)
    ]
    await run_all(world, merge)
    entry = await clients[0].memory.get("n", key)
    assert entry.value == {"kept": {"a": 1, "b0": 0, "b1": 1, "b2": 2, "b3": 3}}
    assert entry.version == 5
    with pytest.raises(MemoryNotFoundError):
        await clients[0].memory.merge("n", fresh("k"), {"a": 1})
    with pytest.raises(ValidationError):
        await clients[0].memory.merge("n", key, ["no object"])  # type: ignore[arg-type]


@two_worlds
async def test_concurrent_grants_lose_nothing(world: World) -> None:
    """The namespace does not exist before."""
    curator, name = fresh("curator"), fresh("policies")
    clients = [world.client(curator) for _ in range(4)]
    grant = [
        lambda number=number, client=client: client.memory.grant(name, f"a{number}", "write")
        for number, client in enumerate(clients)
    ]
    await run_all(world, grant)
    allow = (await clients[0].memory.namespace(name)).permissions.allow
    assert {one.agent for one in allow} == {"a0", "a1", "a2", "a3", curator}
    await clients[0].memory.revoke(name, "a0")
    allow = (await clients[0].memory.grant(name, "a1", "read")).permissions.allow
    assert {one.agent: str(one.access) for one in allow if one.agent != curator} == {
        "a1": "read",
        "a2": "write",
        "a3": "write",
    }
    with pytest.raises(MemoryNotFoundError):
        await clients[0].memory.revoke(fresh("nowhere"), "a0")


@two_worlds
async def test_lifetimes_are_seconds_texts_or_timedeltas(world: World) -> None:
    memory = world.client(fresh("billing")).memory
    for given, stored in (
        (60, "duration:PT60S"),
        ("30m", "duration:PT30M"),
        ("90d", "duration:P90D"),
        ("60", "duration:PT60S"),
        ("PT60S", "duration:PT60S"),
        (timedelta(hours=2), "duration:PT7200S"),
        ("duration:PT5S", "duration:PT5S"),
    ):
        assert (await memory.put("n", "k", {"n": 1}, "episodic", ttl=given)).ttl == stored
    with pytest.raises(ValidationError, match=r"`60s`, .* `PT60S`"):
        await memory.put("n", "k", {"n": 1}, "episodic", ttl="soon")


@two_worlds
async def test_name_that_is_no_text_is_refused_and_finds_nothing_silently(world: World) -> None:
    memory = world.client(fresh("billing")).memory
    name: Any = ("users", "alice")
    for ask in (
        lambda: memory.get(name, "a"),
        lambda: memory.get("users/alice", 7),
        lambda: memory.query(namespace=name),
        lambda: memory.put(name, "a", {"n": 1}),
    ):
        with pytest.raises(ValidationError, match="must be a text"):
            await ask()
    with pytest.raises(TypeError, match="do you mean `namespace`"):
        await memory.query(name_space="users")


@two_worlds
async def test_value_that_is_no_object_is_an_error_that_says_what_to_pass(world: World) -> None:
    for value in ("text", ["a"], 3, None, True):
        await _refuse_value(world, value)


async def _refuse_value(world: World, value: Any) -> None:
    client = world.client(fresh("billing"))
    memory, shared = client.memory, client.shared
    element = {"namespace": "n", "key": "k", "memory_type": "working", "value": value}
    for write in (
        lambda: memory.set("n", "k", value),
        lambda: memory.put("n", "k", value),
        lambda: memory.update("n", "k", lambda _: value, default={}),
        lambda: shared.set("k", value),
        lambda: memory.batch([{**element, "value": {}}, element]),
    ):
        with pytest.raises(ValidationError, match=r'such as \{"value": ...\}') as raised:
            await write()
        assert "text" not in raised.value.detail.replace("a text", "")
    assert raised.value.index == 1
    assert await memory.get("n", "k") is None


async def test_remember_and_recall(world: World) -> None:
    client = world.client(fresh("billing"))
    made = await client.remember("Ana prefers invoices in French", tags=["ana"])
    await client.remember("The warehouse closes at noon")
    assert made.value == {"text": "Ana prefers invoices in French"}
    assert (made.memory_type, made.namespace, made.tags) == ("episodic", "remembered", ("ana",))
    assert made.key
    found = await client.recall("which language for invoices?", limit=1)
    assert made.worthiness is not None
    made = msgspec.structs.replace(made, worthiness=None)
    assert [hit.entry for hit in found] == [made]
    assert await client.memory.get("remembered", made.key) == made
    assert (await client.remember("Ana prefers invoices in French")).key == made.key
    assert await world.client(fresh("stranger")).recall("invoices") == []


async def test_remember_and_recall_about_a_person(world: World) -> None:
    client = world.client(fresh("billing"))
    ann, bob = await client.for_user("ann"), await client.for_user("bob")
    made = await ann.remember("prefers invoices in French")
    assert made.subjects == ("ann",)
    await bob.remember("prefers invoices in German")
    found = await ann.recall("invoices")
    assert [hit.entry.id for hit in found] == [made.id]
    assert len(await client.recall("invoices")) == 2


@two_worlds
async def test_remember_and_recall_by_name_of_the_operation(world: World) -> None:
    client, word = world.client(fresh("billing")), fresh("word").replace("-", "")
    fields = {"metadata": {"n": 1}, "tags": ["a"], "subjects": ["ana"]}
    made = await client.call("remember", text=f"Ana likes {word}", **fields)
    assert (made["memory_type"], made["namespace"]) == ("episodic", "remembered")
    assert (*made["tags"], *made["subjects"]) == ("a", "ana")
    assert made["value"] == {"text": f"Ana likes {word}", "metadata": {"n": 1}}
    found = await client.call("recall", question=word, limit=1)
    assert [hit["entry"]["id"] for hit in found["results"]] == [made["id"]]
    bob = await client.for_user("bob")
    assert (await bob.call("recall", question=word))["results"] == []
    assert (*(await bob.call("remember", text="tea"))["subjects"],) == ("bob",)
    for wrong in ({"text": " "}, {"text": 1}, {"text": "tea", "metadata": [1]}, {}):
        with pytest.raises(ValidationError):
            await client.call("remember", **wrong)
    with pytest.raises(ValidationError):
        await client.call("recall", question=" ")


@two_worlds
async def test_a_write_that_evicts_warns(world: World, caplog: pytest.LogCaptureFixture) -> None:
    agent = fresh("full")
    client = world.client(agent)
    first = await client.remember("one")
    element = {"namespace": "n", "value": {}, "memory_type": "episodic"}
    filled = await client.memory.batch([{**element, "key": f"k{n}"} for n in range(999)])
    assert (first.warnings, filled.warnings) == ((), ())
    last = await client.remember("two")
    assert [one.id for one in last.warnings[0].entries] == [first.id]
    assert first.id in caplog.text
    written = await client.memory.batch([{**element, "key": "last"}])
    assert [one.key for one in written.warnings[0].entries] == ["k0"]


@two_worlds
async def test_metadata_of_a_remembered_text(world: World) -> None:
    client, channel = world.client(fresh("billing")), fresh("channel")
    made = await client.remember("Ana likes tea", metadata={"channel": channel}, tags=["a"])
    assert (made.text, made["metadata"], made.tags) == (
        "Ana likes tea",
        {"channel": channel},
        ("a",),
    )
    found = await client.memory.query(where=f'value.metadata.channel = "{channel}"')
    assert [one.text for one in found] == ["Ana likes tea"]
    plain = await client.memory.put("n", "k", {"n": 1})
    assert plain.text == '{"n":1}'
    with pytest.raises(ValidationError, match="metadata"):
        await client.remember("Ana likes tea", metadata=["email"])


@two_worlds
async def test_remember_needs_a_text(world: World) -> None:
    client = world.client(fresh("billing"))
    for text in ("", "  ", None, {"text": "x"}, 3):
        with pytest.raises(ValidationError, match="text"):
            await client.remember(text)
