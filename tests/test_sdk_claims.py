"""Claims and shared state in the SDK: who holds what, and how the holder knows."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Generator
from itertools import pairwise
from typing import Any

import httpx
import pytest

from memorywall import AsyncClient, Claim, Client
from memorywall.exceptions import (
    EntryExistsError,
    FencedError,
    LeaseHeldError,
    MemoryAccessError,
    MemoryConflictError,
    MemoryNotFoundError,
    MemoryTransportError,
    ResourceNotFoundError,
    UnavailableError,
    ValidationError,
)
from memorywall.records.tier import Tier
from memorywall.sdk.claims import ClaimsCore
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import Now, Pause, Request, Response
from memorywall.sdk.executors import steady_clock
from memorywall.sdk.http import Driver
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
    world,
)

pytestmark = pytest.mark.anyio
__all__ = ["faulty", "server", "world"]

PATIENCE = 20.0


async def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that in time"
        await asyncio.sleep(0.01)


async def claims_of(client: Either, key: str) -> list[Any]:
    return [one for one in await client.claims.list("global") if one.key == key]


async def test_shared_state_is_written_by_everyone_in_turn(world: World) -> None:
    key = fresh("decision")
    one, other = world.client(fresh("one")), world.client(fresh("other"))
    assert await one.shared.get(key) is None
    made = await one.shared.set(key, {"n": 1}, tags="open")
    assert (made.memory_type, made.namespace, made.version) == (Tier.SHARED, "shared/global", 1)
    with pytest.raises(EntryExistsError):
        await other.shared.set(key, {"n": 9})
    assert (await other.shared.get(key))["n"] == 1
    changed = await other.shared.set(key, {"n": 2})
    assert (changed.version, changed.tags) == (2, ("open",))
    with pytest.raises(MemoryConflictError) as raised:
        await one.shared.set(key, {"n": 9})
    assert (raised.value.current_version, raised.value.current_value) == (2, {"n": 2})
    merged = await one.shared.set(key, {"n": 3}, version=raised.value.current_version)
    assert key in [entry.key for entry in await one.shared.list(tags=["open"])]
    assert (await one.shared.list(limit=1)).limit == 1
    with pytest.raises(MemoryConflictError):
        await other.shared.delete(key, version=2)
    await other.shared.delete(key, version=merged.version)
    assert await one.shared.get(key) is None
    with pytest.raises(MemoryNotFoundError):
        await one.shared.delete(key)


async def test_shared_state_is_put_and_updated_without_being_read(world: World) -> None:
    key = fresh("decision")
    one, other = world.client(fresh("one")), world.client(fresh("other"))
    with pytest.raises(MemoryNotFoundError):
        await one.shared.update(key, dict)
    assert (await one.shared.put(key, {"n": 1}, tags="open")).version == 1
    with pytest.raises(EntryExistsError):
        await other.shared.put(key, {"n": 9}, if_absent=True)
    changed = await other.shared.put(key, {"n": 2})
    assert (changed.version, changed.tags) == (2, ("open",))
    counted = await one.shared.update(key, lambda value: {"n": value["n"] + 1})
    assert (counted.version, counted.value) == (3, {"n": 3})
    own = await one.shared.update(key, lambda value: {**value, "m": 1}, "agent", default={"n": 7})
    assert own.value == {"n": 7, "m": 1}
    async with held(other, key):
        with pytest.raises(FencedError):
            await one.shared.put(key, {"n": 8})
        with pytest.raises(MemoryConflictError):
            await other.shared.put(key, {"n": 4})
        assert (await other.shared.get(key)).version == 3
        assert (await other.shared.put(key, {"n": 4})).version == 4


async def test_scopes_keep_apart(world: World) -> None:
    name, key, team = fresh("one"), fresh("key"), fresh("team")
    one, other = world.client(name), world.client(fresh("other"))
    for scope in ("global", f"team:{team}", "agent"):
        await one.shared.set(key, {"in": scope}, scope)
    assert (await one.shared.get(key, "agent")).namespace == f"shared/agent/{name}"
    assert [entry["in"] for entry in await one.shared.list(f"team:{team}")] == [f"team:{team}"]
    assert (await other.shared.get(key))["in"] == "global"
    assert await other.shared.get(key, "agent") is None
    assert await other.shared.get(key, f"team:{team}") is None
    with pytest.raises(MemoryAccessError):
        await other.shared.set(key, {"in": "wrong"}, f"team:{team}")
    with pytest.raises(ValidationError):
        await one.shared.set(key, {}, "nowhere")


async def test_entry_contains_its_sources(world: World) -> None:
    client, key = world.client(fresh("one")), fresh("key")
    first = await client.memory.set("sources", "a", {"n": 1})
    second = await client.memory.set("sources", "b", {"n": 2}, derived_from=first)
    assert [(one.id, one.version) for one in second.provenance.derived_from] == [(first.id, 1)]
    made = await client.shared.set(
        key, {"n": 3}, derived_from=[first, {"id": second.id, "version": 1}]
    )
    assert [one.id for one in made.provenance.derived_from] == [first.id, second.id]
    again = await client.shared.set(key, {"n": 4}, derived_from=made.provenance.derived_from)
    assert again.provenance.derived_from == made.provenance.derived_from
    with pytest.raises(ValidationError):
        await client.shared.set(key, {"n": 5}, derived_from={"id": first.id, "version": 7})
    assert (await client.shared.get(key))["n"] == 4


async def test_claim_is_acquired_renewed_and_released(world: World) -> None:
    key, name = fresh("item"), fresh("one")
    one, other = world.client(name), world.client(fresh("other"))
    claim = await one.claims.acquire(key, 60, purpose="to count")
    assert (claim.key, claim.scope, claim.agent_id, claim.purpose) == (
        key,
        "global",
        name,
        "to count",
    )
    for client in (one, other):
        with pytest.raises(LeaseHeldError) as raised:
            await client.claims.acquire(key)
        assert raised.value.existing_lease["fencing_token"] == claim.fencing_token
    assert [found.id for found in await claims_of(other, key)] == [claim.id]
    assert [found.id for found in await one.claims.list()] == [claim.id]
    assert [found.id for found in await other.claims.list(agent_id=name)] == [claim.id]
    assert await other.claims.get(claim.id) == claim
    assert (await one.claims.renew(claim, 600)).expires_at > claim.expires_at
    with pytest.raises(MemoryAccessError):
        await other.claims.renew(claim.id)
    with pytest.raises(MemoryAccessError):
        await other.claims.release(claim)
    with pytest.raises(FencedError):
        await one.shared.set(key, {"n": 1})
    made = await one.shared.set(key, {"n": 1}, fencing_token=claim.fencing_token)
    assert made.provenance.fencing_token == claim.fencing_token
    await one.claims.release(claim.id)
    with pytest.raises(ResourceNotFoundError):
        await one.claims.release(claim.id)
    later = await other.claims.acquire(key, wait=5)
    assert later.fencing_token > claim.fencing_token


async def test_writes_within_a_hold_carry_its_token(world: World) -> None:
    key, inner_key, free = fresh("item"), fresh("item"), fresh("item")
    one, other = world.client(fresh("one")), world.client(fresh("other"))
    async with held(one, key, purpose="to work") as claim:
        assert isinstance(claim, Claim)
        assert (claim.key, claim.scope, claim.lost) == (key, "global", False)
        made = await one.shared.set(key, {"n": 1})
        assert made.provenance.fencing_token == claim.token
        async with held(one, inner_key) as inner, held(one, key, scope="agent") as own:
            assert (await one.shared.set(inner_key, {})).provenance.fencing_token == inner.token
            assert (await one.shared.set(key, {}, "agent")).provenance.fencing_token == own.token
            changed = await one.shared.set(key, {"n": 2})
            assert changed.provenance.fencing_token == claim.token
            assert (await one.shared.set(free, {})).provenance.fencing_token is None
            assert (await one.memory.set(key, key, {})).provenance.fencing_token is None
        with pytest.raises(FencedError):
            await other.shared.set(key, {"n": 9}, version=2)
        with pytest.raises(FencedError):
            await other.shared.delete(key)
        claim.check()
        await one.shared.delete(key)
        await one.memory.set("shared/global", key, {"n": 3}, "shared")
    assert await claims_of(one, key) == []
    assert (await one.shared.set(key, {"n": 4})).provenance.fencing_token is None
    await other.shared.get(key)
    assert (await other.shared.set(key, {"n": 5})).version == 3


async def test_a_hold_waits_for_another_to_end(world: World) -> None:
    key = fresh("item")
    one, other = world.client(fresh("one")), world.client(fresh("other"))
    first = await other.claims.acquire(key, 1)
    with pytest.raises(LeaseHeldError):
        async with held(one, key):
            raise AssertionError("this is another's")
    async with held(one, key, wait=PATIENCE) as claim:
        assert claim.token > first.fencing_token


async def test_renewed_claim_outlasts_its_ttl(server: ServerProcess) -> None:
    ttl, key, other_key = 8, fresh("item"), fresh("item")
    blocking = Client(server.url, server.dev_key, agent=fresh("one"))
    async with AsyncClient(server.url, server.dev_key, agent=fresh("one")) as awaited:
        with blocking, blocking.claims.hold(key, ttl) as one:
            async with awaited.claims.hold(other_key, ttl) as other:
                over = steady_clock() + ttl
                await until(lambda: steady_clock() > over)
                assert not one.lost
                assert not other.lost
                for taken in (key, other_key):
                    with pytest.raises(LeaseHeldError):
                        await awaited.claims.acquire(taken)
                made = blocking.shared.set(key, {"n": 1})
                assert made.provenance is not None
                assert made.provenance.fencing_token == one.token


async def test_claim_events_are_in_the_stream_of_the_holder(world: World) -> None:
    key = fresh("item")
    client = world.client(fresh("one"))
    async with held(client, key) as claim:
        await client.shared.set(key, {"n": 1})
    acquired, created, released = await client.events.list()
    assert [one.type for one in (acquired, created, released)] == [
        "claim.acquired",
        "memory.created",
        "claim.released",
    ]
    assert (acquired.data["fencing_token"], released.data["key"]) == (claim.token, key)
    assert created.data.key == key


async def test_claim_without_renewal_is_lost_in_time(world: World) -> None:
    key = fresh("item")
    one, other = world.client(fresh("one")), world.client(fresh("other"))
    async with held(one, key, 1, renew=False) as claim:
        await until(lambda: claim.lost)
        with pytest.raises(FencedError):
            claim.check()
        taken = await other.claims.acquire(key, 60, wait=PATIENCE)
        assert taken.fencing_token > claim.token
        with pytest.raises(FencedError):
            await one.shared.set(key, {"by": "the late one"})
        assert claim.lost
    # Leaving the block neither raises nor takes anything from who came after.
    assert [found.id for found in await claims_of(other, key)] == [taken.id]
    made = await other.shared.set(key, {"by": "other"}, fencing_token=taken.fencing_token)
    assert made.version == 1


async def test_ended_claim_is_lost_at_the_next_renewal(
    server: ServerProcess,
) -> None:
    blocking = Client(server.url, server.dev_key, agent=fresh("one"))
    async with AsyncClient(server.url, server.dev_key, agent=fresh("one")) as awaited:
        with blocking, blocking.claims.hold(fresh("item"), 10) as one:
            async with awaited.claims.hold(fresh("item"), 10) as other:
                # Given back behind its holder's back, as another process of the agent can.
                blocking.claims.release(one.id)
                await awaited.claims.release(other.id)
                await until(lambda: one.lost and other.lost)
                assert steady_clock() < min(one.until, other.until)


async def test_an_error_in_a_hold_is_raised_and_gives_it_back(world: World) -> None:
    key = fresh("item")
    client = world.client(fresh("one"))
    with pytest.raises(ZeroDivisionError):
        async with held(client, key):
            raise ZeroDivisionError
    assert await claims_of(client, key) == []


async def test_a_renewal_by_hand_lets_a_claim_last(world: World) -> None:
    client = world.client(fresh("one"))
    async with held(client, fresh("item"), 1, renew=False) as claim:
        renewed = await client.claims.renew(claim, 600)
        assert claim.expires_at == renewed.expires_at
        await asyncio.sleep(1.1)
        assert not claim.lost


async def test_a_hold_that_cannot_be_given_back_ends_quietly(faulty: Faulty) -> None:
    faults = Faults()
    client = faulty.client(fresh("one"), faults)
    key = fresh("item")
    async with held(client, key, 600) as claim:
        await client.shared.set(key, {"n": 1})
        faults.faults = ["unsent"] * 3
    assert claim.is_released
    with pytest.raises(FencedError):
        await client.shared.set(key, {"n": 2})


async def test_claim_with_lost_reply_is_not_repeated(faulty: Faulty) -> None:
    faults = Faults("unsent", "unheard")
    client = faulty.client(fresh("one"), faults)
    key = fresh("item")
    with pytest.raises(MemoryTransportError) as raised:
        await client.claims.acquire(key, 60)
    assert raised.value.sent
    assert [request.method for request in faults.requests] == ["POST"] * 2
    with pytest.raises(LeaseHeldError):
        await client.claims.acquire(key, 60)


def test_another_thread_does_not_write_under_a_hold(server: ServerProcess) -> None:
    key = fresh("item")
    outcomes: list[object] = []
    with Client(server.url, server.dev_key, agent=fresh("one")) as client:

        def write() -> None:
            try:
                outcomes.append(client.shared.set(key, {"by": "a thread"}))
            except FencedError as error:
                outcomes.append(error)

        with client.claims.hold(key) as claim:
            thread = threading.Thread(target=write)
            thread.start()
            thread.join()
            assert isinstance(outcomes[0], FencedError)
            made = client.shared.set(key, {"by": "the holder"})
            assert made.provenance is not None
            assert made.provenance.fencing_token == claim.token


async def test_a_task_writes_under_the_hold_it_was_started_in(server: ServerProcess) -> None:
    key = fresh("item")
    async with AsyncClient(server.url, server.dev_key, agent=fresh("one")) as client:
        begun = asyncio.Event()

        async def write_when_held() -> object:
            await begun.wait()
            return await client.shared.set(key, {"by": "a stranger"})

        stranger = asyncio.create_task(write_when_held())
        async with client.claims.hold(key) as claim:
            begun.set()
            with pytest.raises(FencedError):
                await stranger
            made = await asyncio.create_task(client.shared.set(key, {"by": "a part of it"}))
            assert made.provenance is not None
            assert made.provenance.fencing_token == claim.token


async def test_cancelled_holder_releases_its_claim(server: ServerProcess) -> None:
    key = fresh("item")
    async with AsyncClient(server.url, server.dev_key, agent=fresh("one")) as client:
        inside = asyncio.Event()

        async def work() -> None:
            async with client.claims.hold(key, 600):
                inside.set()
                await asyncio.sleep(600)

        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.claims.acquire(key, wait=PATIENCE)).key == key


def test_threads_that_share_a_client_hold_in_turn(server: ServerProcess) -> None:
    key = fresh("counter")
    failures: list[BaseException] = []
    with Client(server.url, server.dev_key, agent=fresh("one")) as client:
        client.shared.set(key, {"count": 0})

        def work() -> None:
            try:
                for _ in range(5):
                    with client.claims.hold(key, wait=PATIENCE * 3):
                        entry = client.shared.get(key)
                        assert entry is not None
                        client.shared.set(key, {"count": entry["count"] + 1}, version=entry.version)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        counter = client.shared.get(key)
        assert counter is not None
        assert (counter["count"], counter.version) == (20, 21)


def test_a_client_may_be_closed_within_a_hold(server: ServerProcess) -> None:
    client = Client(server.url, server.dev_key, agent=fresh("one"))
    with client.claims.hold(fresh("item"), 1) as claim:
        client.close()
        deadline = time.monotonic() + PATIENCE
        while not claim.lost:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    for thread in threading.enumerate():
        if thread.name == "memorywall-claim":
            thread.join(PATIENCE)
            assert not thread.is_alive()


async def test_an_awaited_client_may_be_closed_within_a_hold(server: ServerProcess) -> None:
    client = AsyncClient(server.url, server.dev_key, agent=fresh("one"))
    async with client.claims.hold(fresh("item"), 1) as claim:
        await client.aclose()
        await until(lambda: claim.lost)


class Simulated:
    """Runs scripts against a time that passes only where it is told to, without a server."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.delays: list[tuple[float, float]] = []
        self.replies: list[tuple[int, dict[str, Any]] | Exception] = []
        self.sent: list[tuple[float, Request]] = []
        self.core = ClaimsCore(ClientState(agent="one"), jitter=lambda: 1.0)

    def reply(
        self, *replies: tuple[int, dict[str, Any]] | Exception, delay: tuple[float, float] = (0, 0)
    ) -> None:
        """What comes next, and seconds until a request arrives and until its reply does."""
        for reply in replies:
            self.replies.append(reply)
            self.delays.append(delay)

    def run(self, script: Generator[Any, Any, Any], most: int = 1_000) -> Any:
        """The script's result; AssertionError if it is not through after so many steps."""
        try:
            step = next(script)
            for _ in range(most):
                try:
                    answer = self._do(step)
                except MemoryTransportError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            return end.value
        raise AssertionError("the script goes on and on")

    def _do(self, step: object) -> object:
        match step:
            case Now():
                return self.now
            case Pause(seconds):
                assert seconds >= 0
                self.now += seconds
                return None
            case Request():
                there, back = self.delays.pop(0)
                self.now += there
                self.sent.append((self.now, step))
                self.now += back
                reply = self.replies.pop(0)
                if isinstance(reply, Exception):
                    raise reply
                status, body = reply
                return Response(status, json.dumps(body).encode())
            case _:
                raise AssertionError(f"there is no such step: {step}")

    def claim(self, ttl: int = 30, *, delay: tuple[float, float] = (0, 0)) -> Claim:
        self.reply((201, view()), delay=delay)
        begin = self.core.begin("item", ttl, "global", None, 0.0, lambda: self.now)
        claim = self.run(begin)
        assert isinstance(claim, Claim)
        return claim


def view(expires_at: str = "2026-01-01T00:00:30.000Z") -> dict[str, Any]:
    return {
        "id": "clm_1",
        "key": "item",
        "scope": "global",
        "agent_id": "one",
        "fencing_token": 7,
        "acquired_at": "2026-01-01T00:00:00.000Z",
        "renewed_at": "2026-01-01T00:00:00.000Z",
        "expires_at": expires_at,
    }


FENCED = (409, {"error": "FENCED", "detail": "over"})
GONE = (404, {"error": "NOT_FOUND", "detail": "gone"})
BUSY = (503, {"error": "UNAVAILABLE", "detail": "busy"})
HELD = (409, {"error": "LEASE_HELD", "existing_lease": {"id": "clm_0"}})
LOST = MemoryTransportError("lost, as the test asked")


def test_the_holder_counts_from_before_it_asked() -> None:
    world = Simulated()
    claim = world.claim(30, delay=(4.0, 5.0))
    # The server counts from 1004, so it lets others in at 1034 and not before.
    assert world.now == 1_009
    world.now = 1_029.9
    assert not claim.lost
    world.now = 1_030.0
    assert claim.lost
    assert claim.token == 7


def test_it_is_renewed_at_half_its_time() -> None:
    world = Simulated()
    claim = world.claim(30)
    world.reply((200, view()), (200, view()), delay=(1.0, 1.0))
    world.reply(FENCED)
    world.run(world.core.keep(claim))
    assert [at for at, _ in world.sent[1:]] == [1_016.0, 1_031.0, 1_045.0]
    assert claim.lost


@pytest.mark.parametrize("answer", [FENCED, GONE])
def test_a_refused_renewal_loses_it_at_once(answer: tuple[int, dict[str, Any]]) -> None:
    world = Simulated()
    claim = world.claim(30)
    world.reply(answer)
    world.run(world.core.keep(claim))
    assert (world.now, claim.lost) == (1_015.0, True)
    with pytest.raises(FencedError):
        claim.check()


def test_unanswered_renewal_is_repeated_until_expiry() -> None:
    world = Simulated()
    claim = world.claim(30)
    world.reply(*[LOST, BUSY] * 50)
    world.run(world.core.keep(claim))
    times = [at for at, _ in world.sent[1:]]
    assert times[0] == 1_015
    assert len(times) > 5
    assert max(times) < 1_030 <= world.now
    assert claim.lost


def test_a_renewal_that_is_heard_after_failures_saves_it() -> None:
    world = Simulated()
    claim = world.claim(30)
    world.reply(LOST, BUSY, (200, view("2026-01-01T00:01:00.000Z")), FENCED)
    world.run(world.core.keep(claim))
    assert claim.expires_at == "2026-01-01T00:01:00.000Z"
    saved_at = world.sent[3][0]
    # Counted from its own sending, whenever the earlier ones were sent.
    assert world.sent[4][0] == saved_at + 15


def test_a_renewal_that_comes_too_late_changes_nothing() -> None:
    world = Simulated()
    claim = world.claim(30)
    world.reply((200, view("2026-01-01T00:01:00.000Z")), delay=(1.0, 20.0))
    world.run(world.core.keep(claim))
    # By now its holder may have found it lost, so it stays that.
    assert world.now == 1_036
    assert claim.lost
    assert claim.expires_at == "2026-01-01T00:00:30.000Z"


def test_released_claim_is_not_renewed() -> None:
    world = Simulated()
    claim = world.claim(30)
    claim.give_back()
    world.run(world.core.keep(claim))
    assert len(world.sent) == 1


def test_wait_ends_at_its_timeout() -> None:
    world = Simulated()
    world.reply(*[HELD] * 100)
    with pytest.raises(LeaseHeldError) as raised:
        world.run(world.core.acquire("item", wait=10.0))
    assert raised.value.existing_lease == {"id": "clm_0"}
    assert world.now == 1_010
    times = [at for at, _ in world.sent]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == sorted(gaps[:-1]) + gaps[-1:]
    assert max(gaps) <= 2.0
    impatient = Simulated()
    impatient.reply(HELD)
    with pytest.raises(LeaseHeldError):
        impatient.run(impatient.core.acquire("item"))
    assert (impatient.now, len(impatient.sent)) == (1_000, 1)


def test_what_was_waited_for_is_counted_from_the_last_attempt() -> None:
    world = Simulated()
    world.reply(HELD, HELD, (201, view()), delay=(1.0, 0))
    begin = world.core.begin("item", 30, "global", None, 60.0, lambda: world.now)
    claim = world.run(begin)
    assert claim.until == world.sent[-1][0] - 1.0 + 30


def test_a_hold_is_not_waited_for_through_other_errors() -> None:
    world = Simulated()
    world.reply(HELD, BUSY)
    with pytest.raises(UnavailableError):
        world.run(world.core.acquire("item", wait=60.0))
    lost = Simulated()
    lost.reply(LOST)
    with pytest.raises(MemoryTransportError):
        lost.run(lost.core.acquire("item", wait=60.0))
    assert len(lost.sent) == 1


def test_giving_back_asks_once_and_never_raises() -> None:
    for answer in (LOST, FENCED, GONE, BUSY, (204, {})):
        world = Simulated()
        claim = world.claim()
        world.reply(answer)
        world.run(world.core.end(claim))
        assert [request.method for _, request in world.sent] == ["POST", "DELETE"]


def test_driver_uses_the_injected_clock_and_pause() -> None:
    paused: list[float] = []
    transport = httpx.MockTransport(lambda request: httpx.Response(409, json=HELD[1]))
    with httpx.Client(transport=transport, base_url="http://x") as http:
        now = [5.0]

        def pause(seconds: float) -> None:
            paused.append(seconds)
            now[0] += seconds

        driver = Driver(lambda: http, pause=pause, clock=lambda: now[0])
        with pytest.raises(LeaseHeldError):
            driver.run(ClaimsCore(ClientState(agent="one")).acquire("item", wait=3.0))
    assert sum(paused) == pytest.approx(3.0)
