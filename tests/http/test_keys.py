"""API keys over HTTP and the SDK: creation, expiry, last use, revocation, and who may do it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.jobs.flush import flush_key_uses
from memorywall.records.clock import format_instant
from memorywall.records.principal import Permission
from memorywall.storage.port import REGISTRY
from memorywall.wire.operations import OPERATIONS
from tests.http.checks import EVERY_PERMISSION, MEMORY, assert_problem, everything, make
from tests.http.test_json_rpc import error
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

KEYS = "/api/v1/keys"
EXPIRED = "the API key has expired; ask an administrator for a new one"


async def created(admin: httpx.AsyncClient, agent: str = "ada", **fields: Any) -> dict[str, Any]:
    """A key that the administrator has created over HTTP."""
    reply = await admin.post(KEYS, json={"agent_id": agent, **fields})
    assert reply.status_code == 201, reply.text
    body: dict[str, Any] = reply.json()
    return body


def after(service: RunningService, seconds: int) -> str:
    return format_instant(service.clock.now() + seconds * 1000)


async def test_a_created_key_works_and_its_secret_is_shown_once(service: RunningService) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    limits = {"namespaces": ["invoices"], "expires_at": after(service, 60)}
    new = await created(admin, **limits)
    text = new.pop("key")
    assert text.startswith(new["prefix"] + ".")
    await make(service.client(text))
    listed = await admin.get(KEYS)
    assert new in listed.json()["keys"]
    assert text.partition(".")[2] not in listed.text
    assert {name: new[name] for name in limits} == limits
    assert new["permissions"] == ["memory.read", "memory.write"]
    assert (new["read_only"], new["revoked_at"], new["last_used_at"]) == (False, None, None)


async def test_an_expired_key_is_refused_and_only_its_holder_learns_why(
    service: RunningService,
) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    text = (await created(admin, expires_at=after(service, 60)))["key"]
    holder, guesser = service.client(text), service.client(text[:-1] + "!")
    unknown = _told(await guesser.get(MEMORY))
    service.clock.advance(59.999)
    assert (await holder.get(MEMORY)).is_success
    service.clock.advance(0.001)
    for _ in range(2):
        expired = assert_problem(await holder.get(MEMORY), 401, "UNAUTHENTICATED")
        assert expired["detail"] == EXPIRED
        assert _told(await guesser.get(MEMORY)) == unknown
    assert assert_problem(await service.client(text).get(MEMORY), 401)["detail"] == EXPIRED
    prefix = text.partition(".")[0]
    assert (await admin.delete(f"{KEYS}/{prefix}")).is_success
    assert _told(await holder.get(MEMORY)) == unknown


async def test_a_revoked_key_is_refused_and_revoking_repeats(service: RunningService) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    new = await created(admin)
    client = service.client(new["key"])
    assert (await client.get(MEMORY)).is_success
    once = await admin.delete(f"{KEYS}/{new['prefix']}")
    assert once.json()["revoked_at"] == format_instant(service.clock.now())
    assert_problem(await client.get(MEMORY), 401)
    service.clock.advance(5)
    assert (await admin.delete(f"{KEYS}/{new['prefix']}")).json() == once.json()
    foreign = (await service.key("eve", tenant="elsewhere")).partition(".")[0]
    for prefix in (foreign, "mw_nothing", "%25"):
        assert_problem(await admin.delete(f"{KEYS}/{prefix}"), 404)
    listed = (await admin.get(KEYS)).json()["keys"]
    assert foreign not in {one["prefix"] for one in listed}


async def test_only_an_administrator_manages_keys(service: RunningService) -> None:
    prefix = (await service.key("victim")).partition(".")[0]
    before = await _stored(service)
    every = set(Permission)
    for permissions in ([], [*every - {Permission.TENANT_ADMIN}]):
        caller = await service.agent("caller", permissions=permissions)
        before = await _stored(service)
        for refused in (
            await caller.get(KEYS),
            await caller.post(KEYS, json={"agent_id": "caller", "permissions": []}),
            await caller.delete(f"{KEYS}/{prefix}"),
        ):
            assert_problem(refused, 403, "ACCESS_DENIED")
    chief = await service.key("chief", permissions=EVERY_PERMISSION)
    before = await _stored(service)
    acting = service.client(chief, agent="ada")
    assert_problem(await acting.post(KEYS, json={"agent_id": "ada"}), 403)
    assert await _stored(service) == before


async def test_no_key_creates_a_key_that_allows_more(service: RunningService) -> None:
    """RFC-0015 section 9.1: who administers a tenant may not read the memory of its agents."""
    clerk = await service.agent("clerk", permissions=[Permission.TENANT_ADMIN])
    deputy = await service.agent(
        "deputy", permissions=[Permission.TENANT_ADMIN, Permission.READ, Permission.WRITE]
    )
    before = await _stored(service)
    for caller, body in (
        (clerk, {"agent_id": "clerk"}),
        (clerk, {"agent_id": "ada", "permissions": []}),
        (deputy, {"agent_id": "ada"}),
        (deputy, {"agent_id": "deputy", "permissions": ["act_as"]}),
    ):
        assert_problem(await caller.post(KEYS, json=body), 403, "ACCESS_DENIED")
    assert await _stored(service) == before
    own = await created(deputy, "deputy", permissions=["memory.read"])
    assert own["read_only"] is True


async def test_no_key_creates_a_key_that_outlives_it(service: RunningService) -> None:
    """For itself and for others, over HTTP and JSON-RPC, and down a chain of keys."""
    latest, later = after(service, 60), after(service, 61)
    key = await service.key("root", permissions=EVERY_PERMISSION, expires_at=latest)
    root = service.client(key)
    before = await _stored(service)
    for agent in ("root", "ada"):
        for fields in (
            {},
            {"expires_at": None},
            {"expires_at": later},
            {"expires_at": "9999-12-31T23:59:59Z"},
        ):
            body = {"agent_id": agent, "permissions": ["memory.read"], **fields}
            told = assert_problem(await root.post(KEYS, json=body), 403, "ACCESS_DENIED")["detail"]
            assert "`expires_at`" in told
            assert latest in told
            assert latest in str(await error(root, "create_key", **body))
    assert await _stored(service) == before
    same = await created(root, "root", permissions=sorted(EVERY_PERMISSION), expires_at=latest)
    assert same["expires_at"] == latest
    heir = service.client(same["key"])
    assert_problem(await heir.post(KEYS, json={"agent_id": "ada"}), 403)
    # The same instant with another offset is not later.
    local = "2026-02-02T04:41:00+02:00"
    assert (await created(heir, expires_at=local))["expires_at"] == latest
    assert (await created(await service.agent("free", permissions=EVERY_PERMISSION)))["key"]


async def test_a_session_token_tells_that_it_ends_with_its_key(service: RunningService) -> None:
    latest = after(service, 60)
    ada = service.client(await service.key("ada", expires_at=latest))
    session = (await ada.post("/api/v1/sessions", json={})).json()["id"]
    token = (await ada.post(f"/api/v1/sessions/{session}/token", json={})).json()
    assert token["expires_at"] == latest


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"expires_at": "2030-01-01"}, "expires_at"),
        ({"namespaces": ["plans*"]}, "namespace"),
        ({"namespaces": [""]}, "namespace"),
        ({"namespaces": [f"n{number}" for number in range(101)]}, "namespaces"),
        ({"subjects": ["a/b"]}, "subject"),
        ({"agent_id": "a/b"}, "agent"),
        ({"kind": "user"}, "kind"),
        ({"permissions": ["memory.everything"]}, "permissions"),
        ({"colour": "red"}, "colour"),
    ],
    ids=lambda part: str(part)[:40],
)
async def test_what_is_not_a_key_is_refused(
    service: RunningService, fields: dict[str, Any], named: str
) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    await service.key("ada")
    before = await _stored(service)
    reply = await admin.post(KEYS, json={"agent_id": "ada", **fields})
    assert named in assert_problem(reply, 422, "VALIDATION_ERROR")["detail"]
    assert await _stored(service) == before


async def test_the_last_use_is_kept_in_memory_and_flushed(service: RunningService) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    new = await created(admin)
    client = service.client(new["key"])
    assert await _last_use(service, new["prefix"]) is None
    service.clock.advance(7)
    await client.get(MEMORY)
    used = format_instant(service.clock.now())
    assert await _last_use(service, new["prefix"]) is None
    await flush_key_uses(service.services)
    assert await _last_use(service, new["prefix"]) == used
    assert used in (await admin.get(KEYS)).text
    # A refusal is no use.
    other = service.client(new["key"][:-1] + "!")
    assert_problem(await other.get(MEMORY), 401)
    service.clock.advance(100)
    await flush_key_uses(service.services)
    assert await _last_use(service, new["prefix"]) == used
    assert service.services.usage_tracker.key_uses == set()


async def test_an_event_stream_ends_with_its_key(service: RunningService) -> None:
    key = await service.key("ada", expires_at=after(service, 60))
    client = service.client(key)
    await make(client)
    service.clock.advance(60)
    headers = {"Accept": "text/event-stream"}
    refused = await client.get("/api/v1/agents/ada/events", headers=headers)
    assert_problem(refused, 401)


async def test_a_read_only_key_changes_nothing(service: RunningService) -> None:
    """Every operation of the table that may change the store."""
    key = await service.key("ada", permissions=EVERY_PERMISSION, read_only=True)
    owner = await service.agent("ada", permissions=EVERY_PERMISSION)
    made = await make(owner)
    entry = f"{MEMORY}/{made['id']}"
    intent = (await owner.post("/api/v1/intents", json={"title": "Close"})).json()["id"]
    narrow = service.client(key)
    before = await everything(service)
    assert (await narrow.get(entry)).json() == made
    for reply in (
        await narrow.post(MEMORY, json=draft("new")),
        await narrow.patch(entry, json={"tags": []}, headers={"If-Match": "1"}),
        await narrow.delete(entry),
        await narrow.delete(f"{MEMORY}/batch", params={"key": "progress", "agent_id": "ada"}),
        await narrow.post(f"{MEMORY}/batch", json={"entries": [draft("new")]}),
        await narrow.post(KEYS, json={"agent_id": "ada", "permissions": ["memory.read"]}),
    ):
        assert reply.status_code == 403 or reply.json() == {"deleted": 0}, reply.text
    values = {"entry_id": made["id"], "intent_id": intent, "agent_id": "ada", "job": "expire"}
    for one in OPERATIONS:
        if one.changes and not one.public:
            path = one.path.replace(":path", "")
            for name in one.path_parameters:
                path = path.replace(f"{{{name}}}", values.get(name, "x"))
            reply = await narrow.request(one.method, path, json={}, headers={"If-Match": "1"})
            assert not reply.is_success or "delet" in one.name, (one.name, reply.text)
    assert await everything(service) == before


def _told(reply: httpx.Response) -> dict[str, Any]:
    """What a refusal tells, without the number of the request."""
    return {**assert_problem(reply, 401), "request_id": None}


async def _stored(service: RunningService) -> list[Any]:
    keys = await service.services.store.read(REGISTRY, lambda to: to.identities.keys(None))
    return [(key.prefix, key.revoked_at) for key in keys]


async def _last_use(service: RunningService, prefix: str) -> str | None:
    key = await service.services.store.read(REGISTRY, lambda to: to.identities.find_key(prefix))
    assert key is not None
    return key.last_used_at
