"""Lost requests and lost replies: what is sent again, and that nothing happens twice."""

from __future__ import annotations

import httpx
import pytest

from memorywall import Client
from memorywall.exceptions import (
    MemoryConflictError,
    MemoryNotFoundError,
    MemoryTransportError,
    ResourceConflictError,
    UnavailableError,
)
from tests.support.process import ServerProcess
from tests.test_sdk_support import Either, Faults, Faulty, faulty, fresh, server, take

pytestmark = pytest.mark.anyio
__all__ = ["faulty", "server"]


def steady(server: ServerProcess, agent: str) -> Client:
    return Client(server.url, server.dev_key, agent=agent)


def methods(faults: Faults) -> list[str]:
    return [request.method for request in faults.requests]


async def kinds(client: Either) -> list[str]:
    return [event.type for event in await client.events.list()]


async def test_a_read_is_repeated(faulty: Faulty) -> None:
    faults = Faults("unsent", "unheard")
    client = faulty.client(fresh("billing"), faults)
    assert await client.memory.get("a", "b") is None
    assert methods(faults) == ["GET"] * 3


async def test_attempts_are_bounded(faulty: Faulty) -> None:
    faults = Faults(*["unheard"] * 9)
    client = faulty.client(fresh("billing"), faults)
    with pytest.raises(MemoryTransportError) as raised:
        await client.memory.get("a", "b")
    assert raised.value.sent
    assert methods(faults) == ["GET"] * 3
    faults.faults = ["unsent"] * 9
    with pytest.raises(MemoryTransportError) as refused:
        await client.memory.set("a", "b", {"n": 1})
    assert not refused.value.sent


async def test_a_create_whose_reply_is_lost_happens_once(faulty: Faulty) -> None:
    faults = Faults("unheard", "unheard")
    client = faulty.client(fresh("billing"), faults)
    made = await client.memory.set("invoices", "progress", {"n": 1})
    assert made.version == 1
    keys = {request.headers["Idempotency-Key"] for request in faults.requests}
    assert (methods(faults), len(keys)) == (["POST"] * 3, 1)
    assert await kinds(client) == ["memory.created"]
    await client.memory.set("invoices", "other", {"n": 1})
    assert faults.requests[-1].headers["Idempotency-Key"] not in keys


async def test_a_batch_whose_reply_is_lost_happens_once(faulty: Faulty) -> None:
    faults = Faults("unheard")
    client = faulty.client(fresh("billing"), faults)
    written = await client.memory.batch(
        {"namespace": "invoices", "key": key, "value": {}} for key in ("a", "b")
    )
    assert written.created == 2
    assert await kinds(client) == ["memory.created"] * 2


async def test_a_change_whose_reply_is_lost_happens_once(faulty: Faulty) -> None:
    faults = Faults("pass", "unheard")
    client = faulty.client(fresh("billing"), faults)
    await client.memory.set("invoices", "progress", {"n": 1})
    changed = await client.memory.set(
        "invoices",
        "progress",
        {"n": 2, "x": [1.5, None]},
        tags=["b", "a", "b"],
        scope={"task_id": "t"},
        expires_at="2100-01-01T01:00:00+01:00",
    )
    assert (changed.version, changed["n"]) == (2, 2)
    assert methods(faults) == ["POST", "PATCH", "PATCH"]
    assert await kinds(client) == ["memory.created", "memory.updated"]
    assert (await client.memory.set("invoices", "progress", {"n": 3})).version == 3


async def test_a_change_with_sources_whose_reply_is_lost_happens_once(faulty: Faulty) -> None:
    faults = Faults()
    client = faulty.client(fresh("billing"), faults)
    source = await client.memory.set("invoices", "source", {"n": 1})
    made = await client.memory.set("invoices", "progress", {"n": 1})
    faults.faults = ["unheard"]
    changed = await client.memory.set(
        "invoices",
        "progress",
        {"n": 2},
        derived_from=[source, source],
        source="urn:x",
        origin="tool",
    )
    assert (changed.id, changed.version) == (made.id, 2)
    assert [one.id for one in changed.provenance.derived_from] == [source.id]
    # What stands there now was made from something, so it is not what is sent here.
    faults.faults = ["unheard"]
    with pytest.raises(MemoryConflictError):
        await client.memory.set("invoices", "progress", {"n": 2}, version=1, derived_from=made)


async def test_a_change_that_did_not_arrive_is_sent_again(faulty: Faulty) -> None:
    faults = Faults("pass", "unsent")
    client = faulty.client(fresh("billing"), faults)
    await client.memory.set("invoices", "progress", {"n": 1})
    assert (await client.memory.set("invoices", "progress", {"n": 2})).version == 2


async def test_change_by_another_agent_is_a_conflict(faulty: Faulty) -> None:
    agent = fresh("billing")
    faults = Faults("pass", "unheard")
    client = faulty.client(agent, faults)
    made = await client.memory.set("invoices", "progress", {"n": 1})
    with steady(faulty.server, agent) as other:
        other.memory.get("invoices", "progress")
        other.memory.set("invoices", "progress", {"n": 2})
    with pytest.raises(MemoryConflictError) as raised:
        await client.memory.set("invoices", "progress", {"n": 3})
    assert raised.value.current_value == {"n": 2}
    # What stands there now is just what is sent, but no earlier attempt can have put it there.
    faults.faults = ["unsent"]
    with pytest.raises(MemoryConflictError):
        await client.memory.set("invoices", "progress", {"n": 2}, version=made.version)


async def test_equal_change_by_another_curator_is_a_conflict(faulty: Faulty) -> None:
    namespace, agent, curator = fresh("policies"), fresh("billing"), fresh("curator")
    faults = Faults("pass", "unheard")
    client = faulty.client(agent, faults)
    made = await client.memory.set(namespace, "rule", {"n": 1}, memory_type="semantic")
    with steady(faulty.server, agent) as administrator:
        administrator.memory.set_permissions(
            namespace,
            allow=[{"agent": agent, "access": "admin"}, {"agent": curator, "access": "write"}],
        )
    with steady(faulty.server, curator) as other:
        other.memory.set(namespace, "rule", {"n": 2}, "semantic", version=made.version)
    with pytest.raises(MemoryConflictError):
        await client.memory.set(namespace, "rule", {"n": 2})


async def test_a_deletion_whose_reply_is_lost_is_done(faulty: Faulty) -> None:
    faults = Faults("pass", "unheard")
    client = faulty.client(fresh("billing"), faults)
    made = await client.memory.set("invoices", "progress", {"n": 1})
    await client.memory.delete_by_id(made.id)
    assert methods(faults) == ["POST", "DELETE", "DELETE"]
    assert await kinds(client) == ["memory.created", "memory.deleted"]
    faults.faults = ["unsent"]
    with pytest.raises(MemoryNotFoundError):
        await client.memory.delete_by_id(made.id)


async def test_a_state_whose_reply_is_lost_is_saved_once(faulty: Faulty) -> None:
    faults = Faults()
    client = faulty.client(fresh("billing"), faults)
    session = Either(await client.sessions.create())
    faults.faults = ["unheard"]
    saved = await session.put_saved_state("1", b"mine", if_absent=True)
    assert (saved.name, saved.size) == ("1", 4)
    faults.faults = ["unheard"]
    with pytest.raises(ResourceConflictError):
        await session.put_saved_state("1", b"other", if_absent=True)
    assert (await session.get_saved_state("1")).data == b"mine"
    faults.faults = ["unheard", "unsent"]
    await session.put_saved_state("1", b"other")
    assert (await session.get_saved_state("1")).data == b"other"


async def test_a_deletion_by_filter_is_not_sent_twice(faulty: Faulty) -> None:
    faults = Faults("pass", "unheard")
    client = faulty.client(fresh("billing"), faults)
    await client.memory.set("invoices", "progress", {"n": 1})
    with pytest.raises(MemoryTransportError):
        await client.memory.delete_matching(memory_type="working")
    assert methods(faults) == ["POST", "DELETE"]
    # It was carried out, and the client knows that it may have been.
    assert (await client.memory.set("invoices", "progress", {"n": 2})).version == 1
    faults.faults = ["unsent"]
    assert await client.memory.delete_matching(memory_type="working") == 1


async def test_export_resumes_after_a_broken_connection(faulty: Faulty) -> None:
    faults = Faults()
    client = faulty.client(fresh("billing"), faults)
    await client.memory.batch(
        {"namespace": "bulk", "key": f"k{n}", "value": {"n": n, "fill": "x" * 500}}
        for n in range(900)
    )
    faults.faults = ["cut", "cut", "unsent", "cut", "unheard"]
    exported = await take(client.target.memory.export(memory_type="working"))
    assert [entry["n"] for entry in exported] == list(reversed(range(900)))
    assert not faults.faults


def test_missing_server_is_reported() -> None:
    with Client("http://127.0.0.1:9", "k", agent="a") as client:
        for call in (client.health, client.memory.namespaces, lambda: next(client.events.follow())):
            with pytest.raises(MemoryTransportError) as raised:
                call()
            assert not raised.value.sent


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (503, b'{"error":"UNAVAILABLE","detail":"busy"}', UnavailableError),
        (502, b"<html>bad gateway</html>", UnavailableError),
        (409, b"[]", MemoryConflictError),
        (
            409,
            b'{"error":"VERSION_MISMATCH","current":7,"current_version":"x"}',
            MemoryConflictError,
        ),
        (404, b"", MemoryNotFoundError),
        (200, b"not json", MemoryTransportError),
        (200, b'{"id": 1}', MemoryTransportError),
        (302, b"", Exception),
        (418, b"\xff", Exception),
    ],
)
def test_strange_replies_become_errors_and_are_not_asked_for_again(
    status: int, body: bytes, kind: type[Exception]
) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(status, content=body)

    transport = httpx.MockTransport(answer)
    with Client("http://x", "k", agent="a", transport=transport) as client:
        with pytest.raises(kind):
            client.memory.get_by_id("mem_1")
        assert len(asked) == 1
